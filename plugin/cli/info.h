/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe info: info_facts.c collects the facts of a model, info_text.c and info_json.c print
 * them.
 */
#ifndef XM_PLUGIN_CLI_INFO_H
#define XM_PLUGIN_CLI_INFO_H

#include "plugin/cli/cli.h"
#include "plugin/exported.h"
#include "plugin/model_facts.h"

enum { XM_INFO_DISAGREEMENTS = 12 };

/* A dimension that the graph and config.json state differently. */
struct xm_info_disagreement {
    const char *what; /* the dimension's name, static */
    uint64_t graph, config;
};

struct xm_info {
    const struct xm_graph *graph;         /* as read, before any pass; not owned */
    uint32_t ops[XM_OP_COUNT];            /* number of nodes, by operation       */
    uint32_t constants[XM_ELEMENT_COUNT]; /* number of constants, by element type */
    uint64_t constant_bytes[XM_ELEMENT_COUNT];
    struct xm_model_facts facts;
    /* .text: why the passes refused the graph; empty: they accepted it */
    struct xm_error no_facts;
    struct xm_hyper_parameters config;
    /* why `config` is empty; status XM_NOT_FOUND: no such file */
    struct xm_error no_config;
    const char *tokenizer_kind; /* static; NULL: none */
    uint64_t tokenizer_size;
    /* the format's name for its tokenizer, for "no …"; static */
    const char *tokenizer_name;
    struct xm_error no_tokenizer;
    uint64_t file_bytes; /* size of the files of graph and weights */
    struct xm_info_disagreement disagreements[XM_INFO_DISAGREEMENTS];
    size_t n_disagreements;
};

/* Fills *out for the package's graph `g`. Missing or damaged files beside the graph are noted in
 * *out, and are not failures. */
void xm_info_find(struct xm_package *p, const struct xm_graph *g, struct xm_info *out);

/* Return the name and the value of a parameter, result or state, as the API shows them. */
const char *xm_info_port_name(const struct xm_node *n);
const struct xm_value *xm_info_port_value(const struct xm_node *n);

void xm_info_print(const struct xm_info *info, bool verbose);
void xm_info_print_compiled(struct xm_compiled *c);

/* Prints the keys and tensors of a GGUF file (gguf_text.c); returns an exit code. */
int xm_info_metadata(const char *path, bool json);

/* ---- a compiled file (info_compiled.c) ---- */

/* Appends the path of the model that the file was compiled from: the graph's file beside the
 * weights that the compiled file refers to. */
enum xm_status xm_info_model_of(const struct xm_import *from, struct xm_strbuf *out,
                                struct xm_error *err);
void xm_info_print_blob(const struct xm_blob_facts *f);
void xm_info_add_blob(struct xm_json_out *j, const struct xm_blob_facts *f);

void xm_info_add(struct xm_json_out *j, const struct xm_info *info);
void xm_info_add_compiled(struct xm_json_out *j, struct xm_compiled *c);

#endif
