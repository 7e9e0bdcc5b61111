/*
 * xplat_lightweight/vector.h by itself.
 */
#include "xplat_lightweight/vector.h"

#include "../check.h"

int main(void)
{
    static char values[100];
    vector_t *vector = new_empty_vector_t(), *copy = new_empty_vector_t();
    DEMAND(vector != NULL && copy != NULL && vector->size == 0);
    DEMAND(popBackElement(vector) == NULL && getBackElement(vector) == NULL);
    copy_vector(vector, copy);
    for (int at = 0; at < 100; at++)
        pushBackElement(vector, &values[at]);
    DEMAND(vector->size == 100 && vector->alloc_size >= 100 && vector->vec[42] == &values[42]);
    DEMAND(getBackElement(vector) == &values[99] && popBackElement(vector) == &values[99]);
    DEMAND(findElement(vector, &values[7]) == 1 && findElement(vector, &values[99]) == 0);
    DEMAND(eraseElement(vector, &values[7]) == vector && vector->size == 98);
    DEMAND(!findElement(vector, &values[7]) && vector->vec[7] == &values[8]);
    DEMAND(eraseElement(vector, &values[7])->size == 98);
    copy_vector(vector, copy);
    DEMAND(copy->size == 98 && memcmp(copy->vec, vector->vec, 98 * sizeof(void *)) == 0);
    clear(vector);
    DEMAND(vector->size == 0 && copy->size == 98);
    delete_vector_t(vector);
    delete_vector_t(copy);
    return 0;
}
