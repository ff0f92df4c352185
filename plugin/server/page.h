/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the web page, which CMake embeds from plugin/server/page.
 */
#ifndef XM_PLUGIN_SERVER_PAGE_H
#define XM_PLUGIN_SERVER_PAGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_page_file {
    const char *path, *type; /* "/": index.html */
    const unsigned char *bytes;
    size_t n;
};
extern const struct xm_page_file xm_page_files[];
extern const size_t xm_n_page_files;

/* Returns the file with a request's path; NULL: there is none. */
const struct xm_page_file *xm_page_find(const char *path);

struct xm_exchange;
void xm_answer_page(struct xm_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
