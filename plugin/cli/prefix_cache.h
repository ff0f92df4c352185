/* SPDX-License-Identifier: Apache-2.0
 *
 * The options --prefix-cache and --prefix-cache-size of the commands that generate texts.
 */
#ifndef XM_PLUGIN_CLI_PREFIX_CACHE_H
#define XM_PLUGIN_CLI_PREFIX_CACHE_H

#include <stddef.h>

#include "plugin/cli/cli.h"
#include "plugin/pipeline/prefix_store.h"

/* Member of a command's arguments; initially zero. */
struct xm_cli_prefix_cache {
    const char *folder; /* NULL: not given */
    uint64_t mib;       /* 0: not given    */
};

/* The rows of these options; `at` is the struct's offset in the command's arguments. */
/* clang-format off */
#define XM_CLI_PREFIX_CACHE_ROWS(at)                                                                \
    { 0, "prefix-cache",      XM_CLI_WORD,  (at) + offsetof(struct xm_cli_prefix_cache, folder), "DIR", "keep the KV cache of finished texts in files of this folder, which is created if it is missing; prompts with the same beginning start from these files" }, \
    { 0, "prefix-cache-size", XM_CLI_COUNT, (at) + offsetof(struct xm_cli_prefix_cache, mib),    "MIB", "most space for these files (4096); the least recently used are deleted" }
/* clang-format on */

/* Checks the options before the model is read. XM_EXIT_USAGE: a size is given without a folder,
 * or the device is REFERENCE.
 * XM_EXIT_FILE: the folder can neither be used nor created. */
int xm_cli_prefix_cache_check(const struct xm_cli_prefix_cache *a, const char *device);
/* Opens the store of a model; *out is NULL if no folder is given. The caller closes it. The
 * sentence of a failure names the option. */
enum xm_status xm_cli_prefix_cache_open(const struct xm_cli_prefix_cache *a,
                                        struct xm_compiled *compiled,
                                        struct xm_prefix_store **out,
                                        struct xm_error *err);

#endif
