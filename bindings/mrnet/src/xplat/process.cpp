/*
 * Processes that are started, here and by remote shell.
 */
#include "xplat/Process.h"

#include <spawn.h>

#include "words.hpp"

namespace XPlat {

namespace {

/* What a tool has set, or else what the environment says. */
struct Setting {
    const char* variable;
    std::string set;

    std::string value(const char* otherwise) const
    {
        const char* found = set.empty() ? getenv(variable) : set.c_str();
        return found == NULL || *found == '\0' ? otherwise : found;
    }
};

Setting shell = {"XPLAT_RSH", ""};
Setting shell_arguments = {"XPLAT_RSH_ARGS", ""};
Setting remote_command = {"XPLAT_REMCMD", ""};

int run(std::vector<std::string> words)
{
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(&word[0]);
    pointers.push_back(NULL);
    pid_t process;
    errno = posix_spawnp(&process, pointers[0], NULL, NULL, pointers.data(), environ);
    return errno == 0 ? 0 : -1;
}

}  // namespace

int Process::GetProcessId()
{
    return getpid();
}

int Process::Create(const std::string& host, const std::string& command,
                    const std::vector<std::string>& arguments)
{
    std::vector<std::string> words;
    if (!NetUtils::IsLocalHost(host)) {
        words = words_of(shell.value("ssh"));
        for (const std::string& word : words_of(shell_arguments.value("")))
            words.push_back(word);
        words.push_back("-n");
        words.push_back(host);
        for (const std::string& word : words_of(remote_command.value("")))
            words.push_back(word);
    }
    words.push_back(command);
    for (size_t at = 1; at < arguments.size(); at++)
        words.push_back(arguments[at]);
    return run(words);
}

void Process::set_RemoteShell(std::string name)
{
    shell.set = name;
}

void Process::set_RemoteShellArgs(std::string arguments)
{
    shell_arguments.set = arguments;
}

void Process::set_RemoteCommand(std::string command)
{
    remote_command.set = command;
}

int Process::GetLastError()
{
    return errno;
}

}  // namespace XPlat
