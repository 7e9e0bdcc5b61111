/*
 * xplat/Atomic.h by itself.
 */
#include "xplat/Atomic.h"

#include "../check.h"

int main()
{
    XPlat::Atomic<int> number(5);
    number.Add(37);
    number.Add(-2);
    DEMAND(number.Get() == 40);
    const XPlat::Atomic<double> fixed(0.5);
    DEMAND(fixed.Get() > 0.4 && fixed.Get() < 0.6);
    return 0;
}
