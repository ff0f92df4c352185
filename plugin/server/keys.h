/* SPDX-License-Identifier: Apache-2.0
 *
 * API keys, by which clients are recognised: the lines of a file.
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
    char *text;           /* the file's text; owned */
    struct xm_slice *all; /* owned; slices of the text */
    size_t n;
};

/* Reads one key from each line; empty lines and those that begin with '#' are skipped. XM_INVALID:
 * the file has no key, or a key has blanks or too many characters. */
enum xm_status xm_keys_read(const char *path, struct xm_keys *out, struct xm_error *err);
void xm_keys_free(struct xm_keys *k);
/* Whether the text is one of the keys. The time depends only on the text's length. */
bool xm_keys_has(const struct xm_keys *k, const char *text);

#ifdef __cplusplus
}
#endif
#endif
