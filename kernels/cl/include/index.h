/* SPDX-License-Identifier: Apache-2.0
 *
 * The flat number of a work-item in launches of one dimension, 64 bits wide: buffers above
 * 4 GiB are ordinary here.
 */
static inline ulong
flat_id(void)
{
    return (ulong)get_global_id(0);
}
