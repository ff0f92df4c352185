/* SPDX-License-Identifier: Apache-2.0
 *
 * What xemoe offers beyond OpenVINO's C API.
 *
 * Sequences: contexts of a language model that live side by side and run together. Compile the
 * model with the property XM_SEQUENCES=YES, make a sequence for each context and a batch to run
 * them; a run takes tokens of any number of sequences, prompts and single ones, and gives the
 * logits of those rows that are asked for. Keys and values are in pages that all sequences of a
 * compiled model share (XM_KV_MEMORY says how much memory they may take): a fork copies none, and a
 * prompt whose beginning another has computed can take that over.
 *
 * Threads: a sequence is used by one thread at a time, and so is a batch; different ones may be
 * used at the same time. Handles keep what they need alive. All functions give a status, and
 * ov_get_last_err_msg() the sentence; that of INVALID_C_PARAM is in the log.
 */
#ifndef XEMOE_XEMOE_H
#define XEMOE_XEMOE_H

#include "openvino/c/ov_compiled_model.h"
#include "openvino/c/ov_core.h"
#include "openvino/c/ov_infer_request.h"

/* "0.1.0"; static. */
OPENVINO_C_API(const char *) xm_version(void);

/* What ov_compiled_model_export_model wrote, used where the file is mapped: as ov_core_import_model
 * without a copy. The model's own files, which weights are read from, are found beside it, or where
 * they were. GENERAL_ERROR: made for another device, driver or xemoe, or a file has changed since;
 * the sentence says which. The file holds code for the device: import only what you trust. */
OPENVINO_C_API(ov_status_e)
xm_import_model_from_file(const ov_core_t *core, const char *path,
                          const char *device_name, ov_compiled_model_t **compiled_model);

/* How a file begins that ov_compiled_model_export_model wrote for a device of xemoe's own. */
#define XM_EXPORTED_MODEL_MARK "xmblob\r\n"

/* From now on `built` is called before each kernel that a device's compiler builds, the k-th of the
 * process, of n that are expected (0: not known), in the thread that builds; NULL: no more. One
 * function a process; to be set while no other thread compiles or runs a model. */
typedef void(OPENVINO_C_API_CALLBACK *xm_build_callback_t)(void *context,
                                                           const char *kernel, uint64_t k,
                                                           uint64_t n);
OPENVINO_C_API(ov_status_e) xm_watch_builds(xm_build_callback_t built, void *context);

/* A device of another maker: a library that keeps to xemoe/plugin.h, by its path (one without a
 * slash is looked for as dlopen does). It is loaded at once; ov_shutdown() unloads it when nothing
 * of it is used any more. GENERAL_ERROR: it cannot be loaded, is made for another version of the
 * header, or the core has a device of that name. Libraries that should be there in every core are
 * named in a list as OpenVINO's plugins.xml, whose path is in the environment (XM_PLUGINS) or given
 * to ov_core_create_with_config(). */
OPENVINO_C_API(ov_status_e)
xm_register_plugin(const ov_core_t *core, const char *device_name, const char *library);

/* Empties the states (KV cache): the next run starts a new sequence. REQUEST_BUSY while
 * an asynchronous run goes on. */
OPENVINO_C_API(ov_status_e) xm_request_reset_states(ov_infer_request_t *infer_request);

/* Writes a model to `xml_path`: one that was read as OpenVINO IR, with its weights in a file of
 * that name with .bin in place of .xml; one of ov_compiled_model_get_runtime_model as an execution
 * graph, each layer with execType, layerType, originalLayersNames and others in its <data>. A file
 * that the model's own weights are in is not written over; a failure leaves what was there. */
OPENVINO_C_API(ov_status_e) xm_model_save(const ov_model_t *model, const char *xml_path);

/* Another element type for the tensors of an input or output of a model that was read, by index;
 * values are converted between it and the model's own. Models that are compiled from then on have
 * it, and so have the model's ports; port handles stay as they were. GENERAL_ERROR: it is no type
 * of whole numbers or floats of 8 bits and more; UNKNOW_EXCEPTION: there is no such port. */
OPENVINO_C_API(ov_status_e)
xm_model_set_input_type(ov_model_t *model, size_t index, ov_element_type_e type);
OPENVINO_C_API(ov_status_e)
xm_model_set_output_type(ov_model_t *model, size_t index, ov_element_type_e type);

/* The friendly name of the node behind a port, for ov_free(): of the parameter, or of the one that
 * makes the result; tensor names are told by ov_port_get_any_name(). */
OPENVINO_C_API(ov_status_e)
xm_port_node_name(const ov_output_const_port_t *port, char **node_name);

/* Weights are read where their file is mapped, by CPU devices at any time. When somebody shortens
 * that file, or its disk fails, whoever reads next gets SIGBUS, which ends the process. The library
 * leaves signals to the program, unless that calls this: from then on such a SIGBUS calls `lost`
 * with the file's path (the end of a long one) and its bytes when it was mapped.
 *
 * `lost` runs in the signal's handler, in any thread, perhaps in several at once: it may do only
 * what is allowed there (write, _exit), and should end the process. When it returns, and for any
 * other SIGBUS, what the program did about the signal before this call happens. A further call
 * only replaces `lost`. Files beyond the 64th that are mapped at once are not recognised. */
typedef void(OPENVINO_C_API_CALLBACK *xm_lost_file_callback_t)(const char *path,
                                                               uint64_t mapped_bytes);
OPENVINO_C_API(ov_status_e) xm_watch_model_files(xm_lost_file_callback_t lost);

/* ---- texts ------------------------------------------------------------------------- */

struct ov_genai_decoded_results_opaque; /* openvino/genai/c/llm_pipeline.h */

/* Natural logarithms of the probabilities of text `sequence`'s tokens, where the generation config
 * asked for them with logprobs; else none. The memory is the result's. OUT_OF_BOUNDS: there are
 * fewer texts. */
OPENVINO_C_API(ov_status_e)
xm_genai_results_logprobs(const struct ov_genai_decoded_results_opaque *results,
                          size_t sequence, const float **values, size_t *n);

/* ---- sequences --------------------------------------------------------------------- */

typedef struct xm_sequence xm_sequence_t;

/* An empty one. NOT_IMPLEMENTED: the model has no context that sequences could hold. */
OPENVINO_C_API(ov_status_e)
xm_sequence_create(const ov_compiled_model_t *compiled_model, xm_sequence_t **sequence);
/* Another one that goes on behind the same tokens. */
OPENVINO_C_API(ov_status_e)
xm_sequence_fork(const xm_sequence_t *sequence, xm_sequence_t **fork);
/* Gives its pages back. NULL is allowed. */
OPENVINO_C_API(void) xm_sequence_free(xm_sequence_t *sequence);
/* Tokens that it holds. */
OPENVINO_C_API(ov_status_e)
xm_sequence_length(const xm_sequence_t *sequence, size_t *length);
/* Forgets the tokens from `length` on. What layers with a window no longer have cannot be gone
 * back to: *kept is then 0, else the smaller of `length` and the tokens there were. kept may be
 * NULL. */
OPENVINO_C_API(ov_status_e)
xm_sequence_truncate(xm_sequence_t *sequence, size_t length, size_t *kept);
/* Takes over, for an empty sequence, the beginning of these tokens that the model still has of
 * others: *found of them, whole pages, fewer than n. The rest is to be run. */
OPENVINO_C_API(ov_status_e)
xm_sequence_match(xm_sequence_t *sequence, const int32_t *tokens, size_t n,
                  size_t *found);

/* ---- runs -------------------------------------------------------------------------- */

typedef struct xm_batch xm_batch_t;

/* The next tokens of a sequence, and of how many of the last of them the logits are wanted. */
typedef struct xm_batch_entry {
    xm_sequence_t *sequence;
    const int32_t *tokens;
    size_t n_tokens, n_wanted;
} xm_batch_entry_t;

/* NOT_IMPLEMENTED: the model has no context, or was compiled without XM_SEQUENCES=YES. */
OPENVINO_C_API(ov_status_e)
xm_batch_create(const ov_compiled_model_t *compiled_model, xm_batch_t **batch);
OPENVINO_C_API(void) xm_batch_free(xm_batch_t *batch); /* NULL is allowed */
/* Runs to the end. A sequence stands in it once; all are of the batch's model. After a failure
 * every sequence holds what it held before. */
OPENVINO_C_API(ov_status_e)
xm_batch_run(xm_batch_t *batch, const xm_batch_entry_t *entries, size_t n_entries);
/* The wanted rows of entry `i` of the last run, [rows][vocabulary], in the order of its tokens; the
 * memory is the batch's, valid until its next run. NULL and no rows where none were wanted.
 * OUT_OF_BOUNDS: that run had i entries or fewer, or it failed, or there was none. */
OPENVINO_C_API(ov_status_e)
xm_batch_logits(const xm_batch_t *batch, size_t i, const float **logits, size_t *rows,
                size_t *vocabulary);
/* From any thread: ends the run that goes on with INFER_CANCELLED; without one, nothing. */
OPENVINO_C_API(ov_status_e) xm_batch_cancel(xm_batch_t *batch);

#endif
