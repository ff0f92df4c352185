/* SPDX-License-Identifier: Apache-2.0
 *
 * The one source of libxemoe itself: all of it is in the libraries that it is linked from, and
 * some build tools want a source for each target.
 */
extern const char *ov_property_key_supported_properties;
const char *const *xm_library_anchor(void);

/* Refers to a symbol of the API, so that a build without it fails here and not at load. */
const char *const *
xm_library_anchor(void)
{
    return &ov_property_key_supported_properties;
}
