/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys by which clients are known: lines of a file.
 */
#ifndef XM_PLUGIN_SERVER_KEYS_H
#define XM_PLUGIN_SERVER_KEYS_H

#include <stdbool.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MOST_KEYS = 1024, XM_MOST_KEY_BYTES = 512 };

/* Zero-initialise. */
struct xm_keys {
    char *text;           /* of the file, owned */
    struct xm_slice *all; /* owned; in the text */
    size_t n;
};

/* One key a line; empty lines and those that begin with '#' are none. XM_INVALID: there is no key,
 * or one is no key: it has blanks, or too many characters. */
enum xm_status xm_keys_read(const char *path, struct xm_keys *out, struct xm_error *err);
void xm_keys_free(struct xm_keys *k);
/* Whether the text is one of them. The time depends on the text's length alone. */
bool xm_keys_has(const struct xm_keys *k, const char *text);

#ifdef __cplusplus
}
#endif
#endif
