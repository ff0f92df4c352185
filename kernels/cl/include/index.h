/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a work-item in launches of one dimension, in 64 bits, because buffers above 4 GiB
 * are ordinary here.
 */
static inline ulong
flat_id(void)
{
    return (ulong)get_global_id(0);
}
