/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that is no plugin.
 */
int no_entry(void);

int
no_entry(void)
{
    return 1;
}
