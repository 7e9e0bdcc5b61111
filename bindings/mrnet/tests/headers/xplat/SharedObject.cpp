/*
 * xplat/SharedObject.h by itself: the mathematics library, and none.
 */
#include "xplat/SharedObject.h"

#include "../check.h"

int main()
{
    XPlat::SharedObject* library = XPlat::SharedObject::Load("libm.so.6");
    DEMAND(library != NULL && library->GetHandle() != NULL);
    DEMAND(strcmp(library->GetPath(), "libm.so.6") == 0);
    double (*root)(double);
    void* symbol = library->GetSymbol("sqrt");
    DEMAND(symbol != NULL);
    memcpy(&root, &symbol, sizeof root);
    DEMAND(root(16.0) > 3.9 && root(16.0) < 4.1);
    DEMAND(library->GetSymbol("no_such_function") == NULL);
    DEMAND(strstr(XPlat::SharedObject::GetErrorString(), "no_such_function") != NULL);
    delete library;
    DEMAND(XPlat::SharedObject::Load("/no/such/library.so") == NULL);
    DEMAND(strstr(XPlat::SharedObject::GetErrorString(), "/no/such/library.so") != NULL);
    return 0;
}
