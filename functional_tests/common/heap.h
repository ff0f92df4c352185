/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_HEAP_H
#define XM_FUNCTIONAL_TESTS_COMMON_HEAP_H

#include <malloc.h>

/* Returns the KiB that the process has allocated; 0 under AddressSanitizer, which finds leaks
 * itself. */
inline long
heap_kib()
{
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<long>((heap.uordblks + heap.hblkhd) / 1024);
}

#endif
