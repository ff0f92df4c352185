/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cache_cipher.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_cache_cipher *list; /* never freed before the process ends */
static size_t n_list;

enum xm_status
xm_cache_cipher_add(struct xm_cache_cipher c, char text[XM_CIPHER_TEXT],
                    struct xm_error *err)
{
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < n_list && (list[i].encrypt != c.encrypt || list[i].decrypt != c.decrypt))
        i++;
    struct xm_cache_cipher *grown = list;
    if (i == n_list)
        grown = xm_realloc(list, (n_list + 1) * sizeof(*grown));
    if (grown)
        list = grown;
    if (grown && i == n_list)
        list[n_list++] = c;
    pthread_mutex_unlock(&lock);
    if (!grown)
        return xm_no_memory(err, XM_CACHE_CIPHER_KEY);
    snprintf(text, XM_CIPHER_TEXT, "%zu", i + 1);
    return XM_OK;
}

enum xm_status
xm_cache_cipher_find(const char *text, struct xm_cache_cipher *out, struct xm_error *err)
{
    char *end;
    const unsigned long i = strtoul(text, &end, 10);
    pthread_mutex_lock(&lock);
    const bool is_one = *end == '\0' && i > 0 && i <= n_list;
    if (is_one)
        *out = list[i - 1];
    pthread_mutex_unlock(&lock);
    return is_one
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         XM_CACHE_CIPHER_KEY " must be a pair of functions, not a text");
}

enum xm_status
xm_cache_cipher_run(xm_cipher_fn fn, const void *bytes, size_t n, struct xm_strbuf *out,
                    struct xm_error *err)
{
    size_t most = 0;
    fn(bytes, n, NULL, &most);
    char *to = most ? xm_malloc(most) : NULL;
    if (!to)
        return most ? xm_no_memory(err, "%zu bytes", most)
                    : xm_fail(err, XM_INVALID, XM_CACHE_CIPHER_KEY " returned no bytes");
    size_t written = most;
    fn(bytes, n, to, &written);
    if (written <= most)
        xm_strbuf_add_n(out, to, written);
    xm_free(to);
    if (written > most)
        return xm_fail(err, XM_INVALID,
                       XM_CACHE_CIPHER_KEY " announced %zu bytes and returned %zu", most,
                       written);
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "%zu bytes", written);
}
