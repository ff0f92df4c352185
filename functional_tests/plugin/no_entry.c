/* SPDX-License-Identifier: Apache-2.0
 *
 * A library without a plugin's entry point.
 */
int no_entry(void);

int
no_entry(void)
{
    return 1;
}
