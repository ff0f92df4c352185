/* SPDX-License-Identifier: Apache-2.0
 *
 * Encryption of the model cache by functions of the application (CACHE_ENCRYPTION_CALLBACKS).
 * Properties are texts all the way to a plugin; therefore a pair of functions is passed as its
 * index in a list of the process. The list grows by one for each new pair and never shrinks.
 */
#ifndef XM_PLUGIN_CACHE_CIPHER_H
#define XM_PLUGIN_CACHE_CIPHER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XM_CACHE_CIPHER_KEY "CACHE_ENCRYPTION_CALLBACKS"

/* Called twice: with `out` NULL it sets *n_out to the size of the output, then it writes the
 * output. */
typedef void (*xm_cipher_fn)(const char *in, const size_t n, char *out, size_t *n_out);

struct xm_cache_cipher {
    xm_cipher_fn encrypt, decrypt;
};

enum { XM_CIPHER_TEXT = 16 };
/* Adds the pair to the list and writes the text that stands for it. */
enum xm_status xm_cache_cipher_add(struct xm_cache_cipher c, char text[XM_CIPHER_TEXT],
                                   struct xm_error *err);
/* Returns the pair that a text stands for. XM_INVALID: the text stands for no pair. */
enum xm_status xm_cache_cipher_find(const char *text, struct xm_cache_cipher *out,
                                    struct xm_error *err);
/* Appends the encrypted or decrypted bytes to *out. XM_INVALID: the function returns no bytes, or
 * another number of bytes than it announced. */
enum xm_status xm_cache_cipher_run(xm_cipher_fn fn, const void *bytes, size_t n,
                                   struct xm_strbuf *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
