/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the IR reader: an IR file as plain records, and the steps from the XML to the graph:
 *
 *     ir_xml.c     XML text -> records
 *     ir_link.c    edges -> the source of each input, and the order of the layers
 *     ir_layers.c  records -> nodes
 *     ir_composed.c     layers that become several nodes
 *     ir_conventions.c  names for dynamic dimensions
 *     ir_joined.c       several files that form one language model
 *     ir_text.c    parsing the texts of attributes
 *
 * All memory is in the net's arena.
 */
#ifndef XM_PLUGIN_READERS_IR_RECORDS_H
#define XM_PLUGIN_READERS_IR_RECORDS_H

#include "runtime/util/memory.h"
#include "runtime/util/status.h"
#include "transformations/graph/builder.h"

enum {
    XM_IR_MAX_PORTS = 1024, /* of one layer and direction: lookup is linear */
    XM_IR_MAX_DEPTH = 64    /* nesting depth of XML elements */
};

/* An attribute of a layer or a property of the net. */
struct xm_ir_text {
    const char *key, *value;
    struct xm_ir_text *next;
};

struct xm_ir_port {
    uint64_t id;
    const char *precision; /* "FP32"; NULL: not given                      */
    const char *names;     /* tensor names, comma-separated; NULL: none    */
    uint32_t rank;
    int64_t dim[XM_MAX_RANK]; /* -1: dynamic                                  */
    struct xm_ir_port *next;
    struct xm_ir_layer *from; /* input, after linking: the layer that feeds it */
    /* input, after linking: the output port of that layer */
    struct xm_ir_port *from_port;
    struct xm_value *value; /* output, after building: its value */
};

struct xm_ir_ports {
    struct xm_ir_port *first, *last;
    uint32_t n;
};

enum xm_ir_visit { XM_IR_UNSEEN, XM_IR_OPEN, XM_IR_DONE };

struct xm_ir_layer {
    uint64_t id;
    const char *name, *type;
    const char *version;      /* "opset8"; NULL: not given            */
    const char *output_names; /* tensor names of a Result; NULL: none */
    struct xm_ir_text *data;  /* attributes                           */
    struct xm_ir_ports in, out;
    enum xm_ir_visit visit;   /* state of the walk in ir_link.c */
    struct xm_ir_layer *next; /* next layer in the file */
};

struct xm_ir_edge {
    uint64_t from_layer, from_port, to_layer, to_port;
    struct xm_ir_edge *next;
};

struct xm_ir_net {
    struct xm_arena arena;
    const char *name;
    struct xm_ir_layer *first_layer, *last_layer;
    size_t n_layers;
    struct xm_ir_edge *first_edge, *last_edge;
    struct xm_ir_text *first_property, *last_property;
    struct xm_ir_layer **order; /* n_layers, operands first; set by xm_ir_link */
};

/* The bytes of the constants, the contents of the .bin file. */
struct xm_ir_weights {
    const uint8_t *bytes; /* NULL: there are none */
    uint64_t n_bytes;
    const char *name; /* for error messages */
};

struct xm_ir_joint;

/* ---- steps; the caller frees net->arena, also after a failure -------------------- */

enum xm_status xm_ir_parse(const char *xml, size_t n, struct xm_ir_net *net,
                           struct xm_error *err);
enum xm_status xm_ir_link(struct xm_ir_net *net, struct xm_error *err);
/* Appends the net's nodes to `g`. `joint` replaces inputs by results of other nets; NULL: all
 * inputs are inputs of the graph. */
enum xm_status xm_ir_build(struct xm_ir_net *net, const struct xm_ir_weights *weights,
                           struct xm_ir_joint *joint, struct xm_graph *g,
                           struct xm_error *err);

/* ---- nets that become one graph ------------------------------------------------------ */

/* State of joining nets: the embedding nets are built first, then the language model. */
struct xm_ir_joint {
    /* The net being built is an embedding net: it maps token ids to a value that is not a result of
     * the graph. */
    bool is_embeddings;
    /* The input of token ids, shared by all nets; NULL: not built yet. */
    struct xm_value *ids;
    struct xm_value *result; /* the result of the last embedding net */
    /* The value for the language model's input inputs_embeds. */
    struct xm_value *embeddings;
    /* The value for its input per_layer_inputs; NULL: the model has no such input. */
    struct xm_value *per_layer;
};

/* Finds the value that replaces a layer of type Parameter. *out NULL: the layer is an input of the
 * graph. */
enum xm_status xm_ir_joint_input(const struct xm_ir_joint *j, struct xm_builder *b,
                                 const struct xm_ir_layer *l, struct xm_value **out,
                                 struct xm_error *err);

/* ---- layers that become several nodes ---------------------------------------------- */

/* Returns the opsets of a layer type that ir_composed.c implements, in the form of ops.def, and its
 * number of inputs. NULL: it does not implement the type. */
const char *xm_ir_composed_opsets(const char *type, uint32_t *n_in);
/* Builds the nodes of such a layer with the operands `in` and returns the result. NULL: *err
 * describes an error in the attributes, or the graph's error one in the operands. */
struct xm_value *xm_ir_compose(struct xm_builder *b, const struct xm_ir_layer *l,
                               struct xm_value *const *in, struct xm_error *err);

/* ---- conventions ----------------------------------------------------------------- */

/* Returns whether an input or a state has the number of new tokens or of past tokens as a
 * dimension. Only then can both be derived from a dimension that is their sum. */
bool xm_ir_tells_lengths(const struct xm_ir_net *net);
/* Set *out to the shape of a parameter or a state, with symbols for dynamic dimensions.
 * knows_lengths: the result of xm_ir_tells_lengths. */
void xm_ir_input_shape(struct xm_graph *g, const struct xm_ir_layer *l,
                       const int64_t *dim, uint32_t rank, bool knows_lengths,
                       struct xm_shape *out);
void xm_ir_state_shape(struct xm_graph *g, const char *variable, const int64_t *dim,
                       uint32_t rank, struct xm_shape *out);

/* ---- text in attributes ---------------------------------------------------------- */

/* Reads a number of decimal digits only. False: it has other characters or overflows. */
bool xm_ir_parse_u64(const char *text, uint64_t *out);
/* Reads a dimension of n characters, such as "256", "?", "-1" or "1..10"; spaces around it are
 * allowed. *out -1: dynamic. False: malformed. */
bool xm_ir_parse_dim(const char *text, size_t n, int64_t *out);
/* Reads a shape such as "?,?,256"; "" is a scalar. Returns NULL, or the reason of the failure. */
const char *xm_ir_parse_shape(const char *text, int64_t *dim, uint32_t *rank);
/* Splits a list of names: "a,b\,c" gives {"a", "b,c"}, allocated in the arena. */
enum xm_status xm_ir_split_names(struct xm_arena *arena, const char *text,
                                 const char *const **names, uint32_t *n,
                                 struct xm_error *err);
/* xm_ir_attr returns an attribute's value; NULL: it is missing. xm_ir_need fails if it is
 * missing. */
const char *xm_ir_attr(const struct xm_ir_layer *l, const char *key);
enum xm_status xm_ir_need(const struct xm_ir_layer *l, const char *key,
                          const char **value, struct xm_error *err);

#endif
