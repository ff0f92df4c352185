/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores cached positions of ended texts as files in a folder, so that a conversation that is
 * continued later need not be computed again, even if its pages have left the KV cache or the
 * program was restarted.
 *
 *     a text ends ──► whole pages of its sequence ──► FOLDER/<model>-<tokens>.kv
 *     a prompt    ──► the file that shares its longest beginning ──► pages of an empty sequence
 *
 * The folder is the index: several stores, of several models and processes, may use one folder. A
 * file is valid for one model, its options (element types of the cache, precision), device and
 * version of xemoe; other stores ignore it. A file appears complete or not at all. Its checksum is
 * verified before a page is used. If the files exceed the bound, the least recently used ones are
 * deleted, whichever model they belong to.
 *
 * The store never makes a text fail: if a file cannot be read or written, it logs a warning, and
 * the positions are computed. But texts wait for the store, because loading and saving run on the
 * thread that runs the scheduler's steps. Each prompt opens the files of the model, and a save may
 * write hundreds of MiB. Unfinished texts and a last, partial page are not stored.
 */
#ifndef XM_PLUGIN_PIPELINE_PREFIX_STORE_H
#define XM_PLUGIN_PIPELINE_PREFIX_STORE_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_prefix_store; /* used by one thread at a time */

/* Checks, before a model is read, that the folder can be used or created. XM_NOT_FOUND: its parent
 * folder is missing. XM_IO: it is no folder, or permissions are missing. */
enum xm_status xm_prefix_store_check(const char *folder, struct xm_error *err);
/* Opens a store and adds a reference to `compiled`. Creates the folder if it is missing; its parent
 * must exist. If the folder is not writable, the store only reads, and logs a warning. most_bytes >
 * 0 is the bound of all files in the folder; a file being written may exceed it until it is
 * complete. XM_UNSUPPORTED: the device, or this model, cannot save sequences. */
enum xm_status xm_prefix_store_open(struct xm_compiled *compiled, const char *folder,
                                    uint64_t most_bytes, struct xm_prefix_store **out,
                                    struct xm_error *err);
/* Logs the warnings that were held back, and closes the store. NULL is allowed. */
void xm_prefix_store_close(struct xm_prefix_store *p);
/* Returns the folder if the store created it; NULL: it existed before. */
const char *xm_prefix_store_made(const struct xm_prefix_store *p);
/* hold: later warnings are kept until say logs them, so that none interrupts a text that is being
 * written to the terminal. NULL is allowed. */
void xm_prefix_store_hold(struct xm_prefix_store *p);
void xm_prefix_store_say(struct xm_prefix_store *p);

/* Fills `s`, a sequence of the store's model, from the file that serves the longest beginning of
 * ids[n], unless the sequence holds as many positions already. At least one token is left to run.
 * The positions that `s` held must be a beginning of ids[n]. Returns the number of positions that
 * came from the file. 0: no file was used; after a failed load `s` may hold fewer positions than
 * before. */
uint64_t xm_prefix_store_load(struct xm_prefix_store *p, struct xm_sequence *s,
                              const int32_t *ids, uint64_t n);
/* Writes the whole pages of `s`, whose positions hold the first tokens of ids[n], unless an
 * existing file can serve them. Then deletes the files that the new one replaces: their tokens are
 * a beginning of these tokens, and the new file can serve all their positions (with sliding windows
 * a longer file cannot always replace a shorter one). No run of the sequence may be enqueued. */
void xm_prefix_store_save(struct xm_prefix_store *p, struct xm_sequence *s,
                          const int32_t *ids, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
