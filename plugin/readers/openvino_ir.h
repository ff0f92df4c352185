/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads OpenVINO IR, versions 10 and 11, into a graph: an XML file of layers and edges, and a .bin
 * file with the bytes of the constants. Each layer becomes a node, or several nodes if the graph
 * has no operation for it (ir_composed.c). Nothing is folded or fused.
 *
 * Constants are views of the .bin file, which stays mapped as long as the graph exists. Layers with
 * bodies (TensorIterator, Loop, If) and custom operations are refused by name. Every error message
 * has the file, the layer, what was expected and what was found.
 */
#ifndef XM_PLUGIN_READERS_OPENVINO_IR_H
#define XM_PLUGIN_READERS_OPENVINO_IR_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an IR. bin_path NULL or "": the XML's path with the ending .bin; that file may be missing
 * if no constant needs it. *out is NULL on failure. */
enum xm_status xm_openvino_ir_read(const char *xml_path, const char *bin_path,
                                   struct xm_graph **out, struct xm_error *err);

/* Reads a language model whose embeddings are files of their own, as one graph from ids to logits:
 * the folder's openvino_text_embeddings_model.xml, openvino_text_embeddings_per_layer_model.xml if
 * it exists, and openvino_language_model.xml. The files for reading pictures are ignored. bin_path:
 * of the language model. */
enum xm_status xm_openvino_ir_read_joined(const char *folder, const char *bin_path,
                                          struct xm_graph **out, struct xm_error *err);

/* Reads an IR from memory. `weights` may be NULL. owner not NULL: the graph holds a reference to
 * it. NULL: the caller keeps the weights alive as long as the graph. The XML is not needed
 * afterwards. */
enum xm_status xm_openvino_ir_read_memory(const char *xml, size_t n, const void *weights,
                                          uint64_t n_weights, struct xm_mapping *owner,
                                          struct xm_graph **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
