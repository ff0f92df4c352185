/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe info: what info_facts.c finds out, and info_text.c and info_json.c say.
 */
#ifndef XM_PLUGIN_CLI_INFO_H
#define XM_PLUGIN_CLI_INFO_H

#include "plugin/cli/cli.h"
#include "plugin/exported.h"
#include "plugin/model_facts.h"

enum { XM_INFO_DISAGREEMENTS = 12 };

/* The graph and config.json say different things. */
struct xm_info_disagreement {
    const char *what; /* static */
    uint64_t graph, config;
};

struct xm_info {
    const struct xm_graph *graph; /* as read */
    uint32_t ops[XM_OP_COUNT];    /* nodes of it, by operation */
    uint32_t constants[XM_ELEMENT_COUNT];
    uint64_t constant_bytes[XM_ELEMENT_COUNT];
    struct xm_model_facts facts;
    struct xm_error no_facts; /* .text: why the passes refused the graph; else empty */
    struct xm_hyper_parameters config;
    struct xm_error no_config; /* why there are none; status XM_NOT_FOUND: no such file */
    const char *tokenizer_kind; /* static; NULL: none */
    uint64_t tokenizer_size;
    const char *tokenizer_name; /* what there is none of, then; static */
    struct xm_error no_tokenizer;
    uint64_t file_bytes; /* of graph and weights */
    struct xm_info_disagreement disagreements[XM_INFO_DISAGREEMENTS];
    size_t n_disagreements;
};

/* All of it for the package's graph. Nothing that is missing beside it is an error. */
void xm_info_find(struct xm_package *p, const struct xm_graph *g, struct xm_info *out);

/* The name a user knows a parameter, result or state by. */
const char *xm_info_port_name(const struct xm_node *n);
const struct xm_value *xm_info_port_value(const struct xm_node *n);

void xm_info_print(const struct xm_info *info, bool verbose);
void xm_info_print_compiled(struct xm_compiled *c);

/* The keys and the tensors of a GGUF file (gguf_text.c); an exit code. */
int xm_info_metadata(const char *path, bool json);

/* A compiled file (info_compiled.c). The model that it was compiled from, as a path to open: the
 * graph's file beside the weights that it refers to. */
enum xm_status xm_info_model_of(const struct xm_import *from, struct xm_strbuf *out,
                                struct xm_error *err);
void xm_info_print_blob(const struct xm_blob_facts *f);
void xm_info_add_blob(struct xm_json_out *j, const struct xm_blob_facts *f);

void xm_info_add(struct xm_json_out *j, const struct xm_info *info);
void xm_info_add_compiled(struct xm_json_out *j, struct xm_compiled *c);

#endif
