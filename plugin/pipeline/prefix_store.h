/* SPDX-License-Identifier: Apache-2.0
 *
 * Cached positions of ended texts as files in a folder, so that a conversation that comes again is
 * not computed again after its pages have left the KV cache, or after the program was restarted.
 *
 *     a text ends ──► whole pages of its sequence ──► FOLDER/<model>-<tokens>.kv
 *     a prompt    ──► the file that shares its longest beginning ──► pages of an empty sequence
 *
 * The folder is the index: several stores, of several models and processes, may use one folder. A
 * file is valid for one model, its options (element types of the cache, precision), device and
 * version of xemoe; other stores ignore it. A file appears as a whole or not at all. Its checksum
 * is verified before a page is used. Where the files exceed the bound, those used longest ago are
 * deleted, whatever model they are of.
 *
 * The store never fails a text: what cannot be read or written causes a warning, and the positions
 * are computed. Texts wait for it, though: loading and saving run on the thread that steps. Each
 * prompt opens the files of the model, and a save may write hundreds of MiB. The store keeps no
 * unfinished texts, nor the positions of a last page that is not full.
 */
#ifndef XM_PLUGIN_PIPELINE_PREFIX_STORE_H
#define XM_PLUGIN_PIPELINE_PREFIX_STORE_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_prefix_store; /* used by one thread at a time */

/* Makes the folder if it is missing, in one that is there, and references `compiled`. From one that
 * cannot be written to, prefixes are read, and none are kept; a warning says so. most_bytes > 0:
 * the bound of all files in the folder; one being written may exceed it until it is complete.
 * XM_UNSUPPORTED: the device, or this model, cannot save sequences. */
enum xm_status xm_prefix_store_open(struct xm_compiled *compiled, const char *folder,
                                    uint64_t most_bytes, struct xm_prefix_store **out,
                                    struct xm_error *err);
/* Also says what was held back. NULL is allowed. */
void xm_prefix_store_close(struct xm_prefix_store *p);
/* The folder, where it was made; NULL: it was there. */
const char *xm_prefix_store_made(const struct xm_prefix_store *p);
/* From now on warnings wait for xm_prefix_store_say, so that none comes within a text that is being
 * written. NULL is allowed. */
void xm_prefix_store_hold(struct xm_prefix_store *p);
void xm_prefix_store_say(struct xm_prefix_store *p);

/* Fills `s`, a sequence of the store's model, from the file that serves the longest beginning of
 * ids[n], unless the sequence holds as many positions already. At least one token is left to run.
 * The positions that `s` held must be a beginning of ids[n]. Returns the positions that came from
 * the file; 0: `s` is as it was, or empty where it failed. */
uint64_t xm_prefix_store_load(struct xm_prefix_store *p, struct xm_sequence *s,
                              const int32_t *ids, uint64_t n);
/* Writes the whole pages of `s`, whose positions hold the first tokens of ids[n], unless a file can
 * serve them. Deletes files that hold a beginning of these tokens only, unless they serve positions
 * that the new one cannot: where a model has sliding windows, a longer file does not stand for a
 * shorter one. No run of the sequence may be enqueued. */
void xm_prefix_store_save(struct xm_prefix_store *p, struct xm_sequence *s,
                          const int32_t *ids, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
