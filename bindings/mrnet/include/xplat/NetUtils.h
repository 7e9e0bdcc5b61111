/*
 * Names and addresses of hosts.
 *
 * XPLAT_RESOLVE_HOSTS=0 in the environment leaves names as they are given, XPLAT_RESOLVE_CANONICAL=1
 * asks for the canonical name, and XPLAT_USE_FQDN=1 keeps the domain in names of hosts.
 */
#ifndef XPLAT_NETUTILS_H
#define XPLAT_NETUTILS_H

#include <string>
#include <vector>

#include "xplat/Types.h"

namespace XPlat {

class NetUtils {
  public:
    class NetworkAddress {
      public:
        NetworkAddress();
        /* Addresses have network byte order. */
        NetworkAddress(in_addr_t address);
        NetworkAddress(struct sockaddr_in6* address);

        bool operator==(const NetworkAddress& other) const;
        bool IsV4() const;
        bool IsV6() const;
        std::string GetString() const;
        in_addr_t GetInAddr() const;
        void GetIn6Addr(struct in6_addr* address) const;
        /* Whether it is one of the loopback interface. */
        bool IsLocal() const;

      private:
        bool is_v6_;
        in_addr_t v4_;
        struct in6_addr v6_;
    };

    /* Each that gives an int gives 0, or -1 for a host that has no address. */
    static bool IsIPAddressStr(std::string& text);
    /* A host's name without its domain; a numeric address stays what it is if it has no name. */
    static int GetHostName(std::string host, std::string& name);
    static int GetNetworkName(std::string host, std::string& name);
    static int GetNetworkAddress(std::string host, NetworkAddress& address);
    static int GetNumberOfNetworkInterfaces();
    /* Every address of this host. */
    static int GetLocalNetworkInterfaces(std::vector<NetworkAddress>& addresses);
    static int GetLocalHostName(std::string& name);
    static bool IsLocalHost(const std::string& host);
    static int GetLastError();
};

}  // namespace XPlat

#endif
