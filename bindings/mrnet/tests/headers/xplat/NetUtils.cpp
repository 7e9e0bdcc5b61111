/*
 * xplat/NetUtils.h by itself: this host, and hosts that are none.
 */
#include "xplat/NetUtils.h"

#include "../check.h"

using XPlat::NetUtils;

static int addresses()
{
    NetUtils::NetworkAddress none, loopback(htonl(INADDR_LOOPBACK)), other(inet_addr("10.1.2.3"));
    DEMAND(none.IsV4() && !none.IsV6() && none.GetString() == "0.0.0.0");
    DEMAND(loopback.GetString() == "127.0.0.1" && loopback.GetInAddr() == htonl(INADDR_LOOPBACK));
    DEMAND(loopback.IsLocal() && !other.IsLocal() && !(loopback == other));
    sockaddr_in6 six = sockaddr_in6();
    six.sin6_family = AF_INET6;
    DEMAND(inet_pton(AF_INET6, "fd00::7", &six.sin6_addr) == 1);
    NetUtils::NetworkAddress sixth(&six), copy(sixth);
    in6_addr bytes;
    copy.GetIn6Addr(&bytes);
    DEMAND(copy.IsV6() && !copy.IsV4() && copy == sixth && copy.GetString() == "fd00::7");
    DEMAND(memcmp(&bytes, &six.sin6_addr, sizeof bytes) == 0 && !(copy == none));
    copy = other;
    DEMAND(copy == other && copy.GetString() == "10.1.2.3");
    std::string text = "10.1.2.3", longer = "::1", name = "a.host";
    DEMAND(NetUtils::IsIPAddressStr(text) && NetUtils::IsIPAddressStr(longer));
    DEMAND(!NetUtils::IsIPAddressStr(name));
    return 0;
}

static int names()
{
    std::string here, name, network;
    DEMAND(NetUtils::GetLocalHostName(here) == 0 && !here.empty());
    DEMAND(NetUtils::GetHostName("localhost", name) == 0 && name == "localhost");
    DEMAND(NetUtils::GetNetworkName("localhost", network) == 0 && network == "localhost");
    DEMAND(NetUtils::GetHostName("127.0.0.1", name) == 0 && !name.empty());
    DEMAND(NetUtils::GetHostName("no..where", name) == -1 && NetUtils::GetLastError() != 0);
    DEMAND(NetUtils::GetNetworkName("no..where", name) == -1);
    setenv("XPLAT_RESOLVE_HOSTS", "0", 1);
    DEMAND(NetUtils::GetNetworkName("no.where", name) == 0 && name == "no.where");
    DEMAND(NetUtils::GetHostName("no.where", name) == 0 && name == "no");
    DEMAND(NetUtils::GetHostName("10.1.2.3", name) == 0 && name == "10.1.2.3");
    setenv("XPLAT_USE_FQDN", "1", 1);
    DEMAND(NetUtils::GetHostName("no.where", name) == 0 && name == "no.where");
    DEMAND(NetUtils::GetHostName(std::string(300, 'n'), name) == -1);
    unsetenv("XPLAT_RESOLVE_HOSTS");
    setenv("XPLAT_RESOLVE_CANONICAL", "1", 1);
    DEMAND(NetUtils::GetNetworkName("localhost", name) == 0 && !name.empty());
    return 0;
}

int main()
{
    NetUtils::NetworkAddress address;
    std::vector<NetUtils::NetworkAddress> own;
    ALSO(addresses());
    DEMAND(NetUtils::GetNetworkAddress("localhost", address) == 0 && address.IsLocal());
    DEMAND(NetUtils::GetNetworkAddress("127.0.0.1", address) == 0);
    DEMAND(address.GetString() == "127.0.0.1");
    DEMAND(NetUtils::GetNetworkAddress("no..where", address) == -1);
    DEMAND(NetUtils::GetNetworkAddress("", address) == -1);
    DEMAND(NetUtils::GetLocalNetworkInterfaces(own) == 0 && !own.empty());
    DEMAND(NetUtils::GetNumberOfNetworkInterfaces() == int(own.size()));
    std::string here;
    NetUtils::GetLocalHostName(here);
    DEMAND(NetUtils::IsLocalHost("localhost") && NetUtils::IsLocalHost("127.0.0.1"));
    DEMAND(NetUtils::IsLocalHost(here) && NetUtils::IsLocalHost(own[0].GetString()));
    DEMAND(!NetUtils::IsLocalHost("no..where") && !NetUtils::IsLocalHost("192.0.2.1"));
    return names();
}
