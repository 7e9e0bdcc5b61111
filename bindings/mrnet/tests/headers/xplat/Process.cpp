/*
 * xplat/Process.h by itself: a process here, and one that a stand-in for ssh is asked for.
 */
#include "xplat/Process.h"

#include <sys/wait.h>

#include "../check.h"

using XPlat::Process;

/* What the next child gives at its end. */
static int result()
{
    int status = 0;
    return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main()
{
    std::map<std::string, uint64_t> brought_in;
    DEMAND(brought_in.empty() && Process::GetProcessId() == getpid());
    std::vector<std::string> words = {"sh", "-c", "exit 7"};
    DEMAND(Process::Create("localhost", "sh", words) == 0 && result() == 7);
    words = {"none"};
    DEMAND(Process::Create("localhost", "/no/such/program", words) == -1);
    DEMAND(Process::GetLastError() == ENOENT);
    Process::set_RemoteShell("sh");
    Process::set_RemoteShellArgs("-c 'test \"$*\" = \"-n far..away nice -n 5 tool one two\"' sh");
    Process::set_RemoteCommand("nice -n 5");
    words = {"tool", "one", "two"};
    DEMAND(Process::Create("far..away", "tool", words) == 0 && result() == 0);
    words = {"tool", "one", "three"};
    DEMAND(Process::Create("far..away", "tool", words) == 0 && result() == 1);
    return 0;
}
