/*
 * This process, and others that it starts.
 */
#ifndef XPLAT_PROCESS_H
#define XPLAT_PROCESS_H

#include <inttypes.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "xplat/NetUtils.h"

namespace XPlat {

class Process {
  public:
    static int GetProcessId();
    /* Runs a command, whose first argument is its own name, on this host, or by remote shell on
       another; 0, or -1. It is a child for the caller to wait for. */
    static int Create(const std::string& host, const std::string& command,
                      const std::vector<std::string>& arguments);
    /* Instead of XPLAT_RSH, XPLAT_RSH_ARGS and XPLAT_REMCMD of the environment. */
    static void set_RemoteShell(std::string shell);
    static void set_RemoteShellArgs(std::string arguments);
    static void set_RemoteCommand(std::string command);
    static int GetLastError();
};

}  // namespace XPlat

#endif
