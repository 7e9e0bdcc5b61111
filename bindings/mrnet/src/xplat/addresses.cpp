/*
 * Names and addresses of hosts.
 */
#include <ifaddrs.h>

#include "../../lightweight/xplat/hosts.h"
#include "xplat/NetUtils.h"
#include "xplat_lightweight/NetUtils.h"

namespace XPlat {

typedef NetUtils::NetworkAddress Address;

Address::NetworkAddress() : is_v6_(false), v4_(INADDR_ANY), v6_(in6addr_any) {}

Address::NetworkAddress(in_addr_t address) : is_v6_(false), v4_(address), v6_(in6addr_any) {}

Address::NetworkAddress(struct sockaddr_in6* address)
    : is_v6_(true), v4_(INADDR_ANY), v6_(address->sin6_addr)
{
}

bool Address::operator==(const Address& other) const
{
    return is_v6_ == other.is_v6_ &&
           (is_v6_ ? memcmp(&v6_, &other.v6_, sizeof v6_) == 0 : v4_ == other.v4_);
}

bool Address::IsV4() const
{
    return !is_v6_;
}

bool Address::IsV6() const
{
    return is_v6_;
}

std::string Address::GetString() const
{
    char text[INET6_ADDRSTRLEN];
    const void* bytes = is_v6_ ? static_cast<const void*>(&v6_) : &v4_;
    return inet_ntop(is_v6_ ? AF_INET6 : AF_INET, bytes, text, sizeof text) == NULL ? "" : text;
}

in_addr_t Address::GetInAddr() const
{
    return v4_;
}

void Address::GetIn6Addr(struct in6_addr* address) const
{
    if (address != NULL)
        *address = v6_;
}

bool Address::IsLocal() const
{
    return is_v6_ ? IN6_IS_ADDR_LOOPBACK(&v6_) : ntohl(v4_) >> 24 == IN_LOOPBACKNET;
}

namespace {

bool is_internet(const sockaddr* address)
{
    return address != NULL && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

Address address_of(sockaddr* address)
{
    if (address->sa_family == AF_INET6)
        return Address(reinterpret_cast<sockaddr_in6*>(address));
    return Address(reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr);
}

bool is_in(const std::vector<Address>& addresses, const Address& wanted)
{
    for (const Address& address : addresses)
        if (address == wanted)
            return true;
    return false;
}

std::vector<Address> addresses_of(const std::string& host)
{
    std::vector<Address> addresses;
    addrinfo* found;
    if (mrn_addresses(host.c_str(), 0, &found) != 0)
        return addresses;
    for (addrinfo* at = found; at != NULL; at = at->ai_next)
        if (is_internet(at->ai_addr))
            addresses.push_back(address_of(at->ai_addr));
    freeaddrinfo(found);
    return addresses;
}

int ask(int (*question)(char*, char*), std::string& host, std::string& answer)
{
    char name[XPLAT_MAX_HOSTNAME_LEN];
    if (question(&host[0], name) != 0)
        return -1;
    answer = name;
    return 0;
}

}  // namespace

bool NetUtils::IsIPAddressStr(std::string& text)
{
    return mrn_is_address(text.c_str());
}

int NetUtils::GetHostName(std::string host, std::string& name)
{
    return ask(XPlat_NetUtils_GetHostName, host, name);
}

int NetUtils::GetNetworkName(std::string host, std::string& name)
{
    return ask(XPlat_NetUtils_FindNetworkName, host, name);
}

int NetUtils::GetNetworkAddress(std::string host, NetworkAddress& address)
{
    std::vector<Address> found = addresses_of(host);
    if (found.empty())
        return -1;
    address = found.front();
    for (size_t at = found.size(); at-- > 0;)
        if (found[at].IsV4())
            address = found[at];
    return 0;
}

int NetUtils::GetNumberOfNetworkInterfaces()
{
    std::vector<Address> addresses;
    return GetLocalNetworkInterfaces(addresses) == 0 ? int(addresses.size()) : -1;
}

int NetUtils::GetLocalNetworkInterfaces(std::vector<NetworkAddress>& addresses)
{
    ifaddrs* found;
    if (getifaddrs(&found) != 0)
        return -1;
    addresses.clear();
    for (ifaddrs* at = found; at != NULL; at = at->ifa_next)
        if (is_internet(at->ifa_addr))
            addresses.push_back(address_of(at->ifa_addr));
    freeifaddrs(found);
    return 0;
}

int NetUtils::GetLocalHostName(std::string& name)
{
    char place[XPLAT_MAX_HOSTNAME_LEN];
    if (XPlat_NetUtils_GetLocalHostName(place) != 0)
        return -1;
    name = place;
    return 0;
}

bool NetUtils::IsLocalHost(const std::string& host)
{
    std::string here;
    if (GetLocalHostName(here) == 0 && host == here)
        return true;
    std::vector<Address> own;
    GetLocalNetworkInterfaces(own);
    for (const Address& address : addresses_of(host))
        if (address.IsLocal() || is_in(own, address))
            return true;
    return false;
}

int NetUtils::GetLastError()
{
    return errno;
}

}  // namespace XPlat
