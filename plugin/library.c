/* SPDX-License-Identifier: Apache-2.0
 *
 * The only source file of libxemoe itself. Its code comes from other libraries, but some build
 * tools require each target to have a source.
 */
extern const char *ov_property_key_supported_properties;
const char *const *xm_library_anchor(void);

/* Refers to a symbol of the API, so that linking fails if the API is missing, not loading. */
const char *const *
xm_library_anchor(void)
{
    return &ov_property_key_supported_properties;
}
