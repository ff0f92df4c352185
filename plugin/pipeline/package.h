/* SPDX-License-Identifier: Apache-2.0
 *
 * A model package: all that a path holds for making text.
 *
 *     path ──► the reader that recognises it ──► graph
 *                                            ├──► tokenizer
 *                                            ├──► chat template
 *                                            ├──► generation: ids that end a text, sampling
 *                                            └──► facts: family, dimensions, context
 *
 * Opening finds the reader only. The graph and each part of the text side are read when they are
 * asked for, so that who wants the tokenizer maps no weights. Whether parts are files of their
 * own or lie in the one that has the graph is the reader's matter: a format is a row of the table
 * in package.c, and nobody else asks which one it is.
 *
 * Parts are read by one thread; what has been read is immutable and may be used by many.
 */
#ifndef XM_PLUGIN_PIPELINE_PACKAGE_H
#define XM_PLUGIN_PIPELINE_PACKAGE_H

#include "plugin/text/chat_template.h"
#include "plugin/text/generation_config.h"
#include "plugin/text/hyper_parameters.h"
#include "plugin/text/tokenizer.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_package_part {
    XM_PACKAGE_TOKENIZER,
    XM_PACKAGE_CHAT_TEMPLATE,
    XM_PACKAGE_GENERATION, /* that nothing is said is no failure; ends that only the tokenizer
                              knows are among its ids */
    XM_PACKAGE_FACTS,
    XM_PACKAGE_N_PARTS
};

struct xm_package {
    const struct xm_package_reader *reader; /* the row */
    char *path;                             /* owned; as it was given */
    struct xm_tokenizer *tokenizer;         /* owned; NULL: none, or not read */
    struct xm_chat_template *chat_template; /* the same */
    struct xm_strbuf other_template;        /* that stands for the model's; empty: none */
    struct xm_generation_config generation;
    struct xm_hyper_parameters facts; /* zeros: not said, or not read */
    /* How reading a part went, and why not. */
    struct xm_package_outcome {
        bool tried;
        struct xm_error why;
    } outcome[XM_PACKAGE_N_PARTS];
};

/* A format: a file or a folder. Sentences name the file. */
struct xm_package_reader {
    const char *name;
    const char *tokenizer; /* what there is none of: "tokenizer.json beside the model" */
    const char *sampling;  /* who recommends it: "generation_config.json" */
    /* Looks at names and first bytes only. */
    bool (*recognises)(const char *path);
    /* `weights`: their file, where the format has one and it is not where it usually is; else
     * NULL or "". */
    enum xm_status (*read_graph)(const char *path, const char *weights,
                                 struct xm_graph **out, struct xm_error *err);
    /* Fills the part's member of the package; XM_NOT_FOUND: there is none. */
    enum xm_status (*read_part[XM_PACKAGE_N_PARTS])(struct xm_package *p,
                                                    struct xm_error *err);
    /* Of the graph and its weights, on the disk. */
    uint64_t (*file_bytes)(const char *path);
};

/* XM_NOT_FOUND: no reader recognises the path; the sentence says what one would. */
enum xm_status xm_package_open(const char *path, struct xm_package **out,
                               struct xm_error *err);
void xm_package_close(struct xm_package *p); /* NULL is allowed */

/* The graph to make text with: caches that it has as inputs and results are its states. */
enum xm_status xm_package_read_graph(const struct xm_package *p, const char *weights,
                                     struct xm_graph **out, struct xm_error *err);
/* Reads a part unless that has been tried; the same answer each time, but where memory ran out.
 * XM_NOT_FOUND: the package has none; anything else: it is damaged. */
enum xm_status xm_package_read(struct xm_package *p, enum xm_package_part part,
                               struct xm_error *err);
/* Gives the package another chat template, which gets the package's special tokens, and reads it.
 * Before that part has been read. XM_INVALID: it cannot be parsed. */
enum xm_status xm_package_use_chat_template(struct xm_package *p, const char *text,
                                            size_t n, struct xm_error *err);
uint64_t xm_package_file_bytes(const struct xm_package *p);
/* Where the files beside the graph's are: the path itself, or what is before its last slash. */
enum xm_status xm_package_folder(const char *path, struct xm_strbuf *out,
                                 struct xm_error *err);

/* The graph alone and as it is, for those who want nothing else of the path. */
enum xm_status xm_package_graph_of(const char *path, const char *weights,
                                   struct xm_graph **out, struct xm_error *err);

/* Whether two names of files in one folder are parts of one split GGUF model: they differ in the
 * part's number only. */
bool xm_package_is_same_gguf(const char *a, const char *b);

/* The rows. */
extern const struct xm_package_reader xm_package_gguf;
extern const struct xm_package_reader xm_package_openvino;

#ifdef __cplusplus
}
#endif
#endif
