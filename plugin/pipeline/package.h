/* SPDX-License-Identifier: Apache-2.0
 *
 * A model package: the graph, the tokenizer and the other parts of a language model at one path.
 *
 *     path ──► the reader that recognises it ──► graph
 *                                            ├──► tokenizer
 *                                            ├──► chat template
 *                                            ├──► generation: ids that end a text, sampling
 *                                            ├──► facts: family, dimensions, context
 *                                            └──► pooling of embeddings
 *
 * Opening a package only finds its reader. The graph and each part of the text side are read on
 * demand, so that a caller who needs only the tokenizer maps no weights. A reader is the code of
 * one file format, a row of the table in package.c. It decides in which files the parts lie; no
 * code outside of the readers depends on the format.
 *
 * One thread at a time may read parts. A part that has been read is immutable and may be used by
 * many threads.
 */
#ifndef XM_PLUGIN_PIPELINE_PACKAGE_H
#define XM_PLUGIN_PIPELINE_PACKAGE_H

#include "plugin/text/chat_template.h"
#include "plugin/text/generation_config.h"
#include "plugin/text/hyper_parameters.h"
#include "plugin/text/pooling.h"
#include "plugin/text/tokenizer.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_package_part {
    XM_PACKAGE_TOKENIZER,
    XM_PACKAGE_CHAT_TEMPLATE,
    /* never missing: without its file it holds defaults; it includes the end-of-text tokens that
     * only the tokenizer knows (end_tokens.h) */
    XM_PACKAGE_GENERATION,
    XM_PACKAGE_FACTS,
    /* never missing: without its file the pooling takes the last token */
    XM_PACKAGE_POOLING,
    XM_PACKAGE_N_PARTS
};

struct xm_package {
    const struct xm_package_reader *reader; /* the format's row */
    char *path;                             /* owned; as it was given */
    struct xm_tokenizer *tokenizer;         /* owned; NULL: none, or not read */
    struct xm_chat_template *chat_template; /* owned; NULL: none, or not read */
    struct xm_strbuf other_template; /* replaces the model's template; empty: does not */
    struct xm_generation_config generation;
    struct xm_hyper_parameters facts; /* zeros: not given, or not read */
    enum xm_pooling pooling;          /* of embeddings */
    /* whether reading a part was tried, and its error */
    struct xm_package_outcome {
        bool tried;
        struct xm_error why;
    } outcome[XM_PACKAGE_N_PARTS];
};

/* A file format. Its error sentences name the file. */
struct xm_package_reader {
    const char *name;
    /* names the missing file in errors: "tokenizer.json beside the model" */
    const char *tokenizer;
    /* names the source of recommended sampling: "generation_config.json" */
    const char *sampling;
    /* Whether the path has this format; reads names and first bytes only. */
    bool (*recognises)(const char *path);
    /* `weights`: the path of the weights, if they are not in their usual place beside the graph;
     * else NULL or "". */
    enum xm_status (*read_graph)(const char *path, const char *weights,
                                 struct xm_graph **out, struct xm_error *err);
    /* Fills the part's member of the package; XM_NOT_FOUND: there is none. */
    enum xm_status (*read_part)(struct xm_package *p, enum xm_package_part part,
                                struct xm_error *err);
    /* Size on disk of graph and weights. */
    uint64_t (*file_bytes)(const char *path);
};

/* Finds the reader of a path. XM_NOT_FOUND: no reader recognises it; the sentence lists the known
 * formats. */
enum xm_status xm_package_open(const char *path, struct xm_package **out,
                               struct xm_error *err);
void xm_package_close(struct xm_package *p); /* NULL is allowed */

/* Reads the graph for generating text. KV caches that the file has as inputs and results become
 * states. The caller destroys *out. */
enum xm_status xm_package_read_graph(const struct xm_package *p, const char *weights,
                                     struct xm_graph **out, struct xm_error *err);
/* Reads a part at the first call; later calls return the same status and sentence, except that a
 * part that failed for want of memory is tried again. XM_NOT_FOUND: the package lacks the part; any
 * other failure: the part is damaged. */
enum xm_status xm_package_read(struct xm_package *p, enum xm_package_part part,
                               struct xm_error *err);
/* Replaces the model's chat template by `text` (n bytes) and parses it, with the package's special
 * tokens. Call it before that part has been read. XM_INVALID: the text cannot be parsed. */
enum xm_status xm_package_use_chat_template(struct xm_package *p, const char *text,
                                            size_t n, struct xm_error *err);
uint64_t xm_package_file_bytes(const struct xm_package *p);
/* Appends the folder of the package's files: the path itself if it is a folder, else the part
 * before its last slash. */
enum xm_status xm_package_folder(const char *path, struct xm_strbuf *out,
                                 struct xm_error *err);

/* Reads the graph as the file has it, without opening a package. The caller destroys *out. */
enum xm_status xm_package_graph_of(const char *path, const char *weights,
                                   struct xm_graph **out, struct xm_error *err);

/* Whether two file names of one folder are parts of the same split GGUF model: they differ only in
 * the part's number. */
bool xm_package_is_same_gguf(const char *a, const char *b);

bool xm_package_is_folder(const char *path);

/* The rows. */
extern const struct xm_package_reader xm_package_gguf;
extern const struct xm_package_reader xm_package_openvino;

#ifdef __cplusplus
}
#endif
#endif
