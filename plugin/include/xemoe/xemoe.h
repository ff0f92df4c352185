/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe's additions to OpenVINO's C API.
 *
 * Sequences: contexts of a language model that run together. Compile the model with the property
 * XM_SEQUENCES=YES, create a sequence for each context and a batch to run them. A run takes tokens
 * of any number of sequences, whole prompts and single tokens, and returns the logits of the rows
 * that the caller asks for. Keys and values are in pages of a pool that all sequences of a compiled
 * model share (XM_KV_MEMORY bounds its memory): a fork copies no page, and a sequence can reuse the
 * pages of a prompt's beginning that another sequence has computed.
 *
 * Threads: a sequence and a batch are used by one thread at a time; different ones may be used at
 * the same time. A handle keeps the objects alive that it depends on. All functions return a
 * status; ov_get_last_err_msg() has the sentence, except for INVALID_C_PARAM, whose sentence is in
 * the log.
 */
#ifndef XEMOE_XEMOE_H
#define XEMOE_XEMOE_H

#include "openvino/c/ov_compiled_model.h"
#include "openvino/c/ov_core.h"
#include "openvino/c/ov_infer_request.h"

/* Returns the version of xemoe, "0.1.0"; the string is static. */
OPENVINO_C_API(const char *) xm_version(void);

/* Imports a file of ov_compiled_model_export_model in place: as ov_core_import_model, but the file
 * is mapped and not copied. Weights are read from the model's own files, which are searched for
 * beside the exported file and then at their former path. GENERAL_ERROR: the file was exported for
 * another device, driver or version of xemoe, or a file of the model has changed since; the
 * sentence says which. The file contains code for the device: import only files that you trust. */
OPENVINO_C_API(ov_status_e)
xm_import_model_from_file(const ov_core_t *core, const char *path,
                          const char *device_name, ov_compiled_model_t **compiled_model);

/* The first bytes of a file that ov_compiled_model_export_model wrote for a built-in device. */
#define XM_EXPORTED_MODEL_MARK "xmblob\r\n"

/* Sets the function that is called before each kernel build by a device's compiler, in the thread
 * that builds: kernel number k of this process, of n expected ones (0: unknown). Kernels loaded
 * from the cache count too. NULL: no function. There is one function per process; set it while no
 * other thread compiles or runs a model. */
typedef void(OPENVINO_C_API_CALLBACK *xm_build_callback_t)(void *context,
                                                           const char *kernel, uint64_t k,
                                                           uint64_t n);
OPENVINO_C_API(ov_status_e) xm_watch_builds(xm_build_callback_t built, void *context);

/* Adds a device plugin to the core: a library that implements xemoe/plugin.h, by its path (a name
 * without a slash is searched for as dlopen does). The library is loaded at once; ov_shutdown()
 * unloads it when no object of it is left. GENERAL_ERROR: the library cannot be loaded or was made
 * for another version of the header, or the core has a device of that name. To have plugins in
 * every core, list them in a file like OpenVINO's plugins.xml and name it in the environment
 * (XM_PLUGINS) or in ov_core_create_with_config(). */
OPENVINO_C_API(ov_status_e)
xm_register_plugin(const ov_core_t *core, const char *device_name, const char *library);

/* Clears the states (KV cache): the next run starts a new sequence. REQUEST_BUSY during an
 * asynchronous run. */
OPENVINO_C_API(ov_status_e) xm_request_reset_states(ov_infer_request_t *infer_request);

/* Writes a model to `xml_path`. A model read as OpenVINO IR gets its weights in a file of the same
 * name with .bin instead of .xml. A model of ov_compiled_model_get_runtime_model is written as an
 * execution graph: each layer has execType, layerType, originalLayersNames and others in its
 * <data>. Never overwrites a file that the model's weights are mapped from; a failure leaves
 * existing files unchanged. */
OPENVINO_C_API(ov_status_e) xm_model_save(const ov_model_t *model, const char *xml_path);

/* Sets another element type for the tensors of an input or output, by index, of a model that was
 * read; values are converted between it and the model's own type. The model's ports and models
 * compiled afterwards have the new type; existing port handles keep the old one. GENERAL_ERROR: it
 * is not an integer or float type of at least 8 bits; UNKNOW_EXCEPTION: there is no such port. */
OPENVINO_C_API(ov_status_e)
xm_model_set_input_type(ov_model_t *model, size_t index, ov_element_type_e type);
OPENVINO_C_API(ov_status_e)
xm_model_set_output_type(ov_model_t *model, size_t index, ov_element_type_e type);

/* The friendly name of a port's node: the parameter, or the node that computes the result. Free it
 * with ov_free(). For tensor names see ov_port_get_any_name(). */
OPENVINO_C_API(ov_status_e)
xm_port_node_name(const ov_output_const_port_t *port, char **node_name);

/* Reports weight files that become unreadable. Weights are read from the mapped file, by CPU
 * devices in every run. When the file is truncated or its disk fails, the next read raises SIGBUS,
 * which ends the process. The library installs no signal handler unless the program calls this
 * function: then such a SIGBUS calls `lost` with the file's path (the end of a long one) and its
 * size in bytes when it was mapped.
 *
 * `lost` runs in the signal handler, in any thread, perhaps in several at once: it must be
 * async-signal-safe (write, _exit) and should end the process. When it returns, and for every other
 * SIGBUS, the program's previous handler is called. A second call only replaces `lost`. Beyond 64
 * files mapped at once, further files are not recognised. */
typedef void(OPENVINO_C_API_CALLBACK *xm_lost_file_callback_t)(const char *path,
                                                               uint64_t mapped_bytes);
OPENVINO_C_API(ov_status_e) xm_watch_model_files(xm_lost_file_callback_t lost);

/* ---- texts ------------------------------------------------------------------------- */

struct ov_genai_decoded_results_opaque; /* openvino/genai/c/llm_pipeline.h */

/* Natural logarithms of the probabilities of the tokens of text `sequence`; none unless the
 * generation config set logprobs. The result owns the memory. OUT_OF_BOUNDS: there are fewer
 * texts. */
OPENVINO_C_API(ov_status_e)
xm_genai_results_logprobs(const struct ov_genai_decoded_results_opaque *results,
                          size_t sequence, const float **values, size_t *n);

/* ---- sequences --------------------------------------------------------------------- */

typedef struct xm_sequence xm_sequence_t;

/* Creates an empty sequence. NOT_IMPLEMENTED: the model has no KV cache. */
OPENVINO_C_API(ov_status_e)
xm_sequence_create(const ov_compiled_model_t *compiled_model, xm_sequence_t **sequence);
/* Creates a sequence with the same tokens; it shares their pages. */
OPENVINO_C_API(ov_status_e)
xm_sequence_fork(const xm_sequence_t *sequence, xm_sequence_t **fork);
/* Frees the sequence and its references to pages. NULL is allowed. */
OPENVINO_C_API(void) xm_sequence_free(xm_sequence_t *sequence);
/* Number of tokens in the sequence. */
OPENVINO_C_API(ov_status_e)
xm_sequence_length(const xm_sequence_t *sequence, size_t *length);
/* Truncates the sequence to `length` tokens. *kept is the new number of tokens: the smaller of
 * `length` and the old number; or 0 where a layer with a sliding window no longer has the keys and
 * values that the shorter sequence would need. kept may be NULL. */
OPENVINO_C_API(ov_status_e)
xm_sequence_truncate(xm_sequence_t *sequence, size_t length, size_t *kept);
/* Prefix reuse: gives an empty sequence the cached pages of the longest beginning of `tokens` that
 * another sequence has computed. *found is the number of tokens whose positions it now holds: whole
 * pages, fewer than n. Run the tokens from *found on. */
OPENVINO_C_API(ov_status_e)
xm_sequence_match(xm_sequence_t *sequence, const int32_t *tokens, size_t n,
                  size_t *found);

/* ---- runs -------------------------------------------------------------------------- */

typedef struct xm_batch xm_batch_t;

/* The next tokens of a sequence, and the number of its last tokens whose logits are wanted. */
typedef struct xm_batch_entry {
    xm_sequence_t *sequence;
    const int32_t *tokens;
    size_t n_tokens, n_wanted;
} xm_batch_entry_t;

/* NOT_IMPLEMENTED: the model has no context, or was compiled without XM_SEQUENCES=YES. */
OPENVINO_C_API(ov_status_e)
xm_batch_create(const ov_compiled_model_t *compiled_model, xm_batch_t **batch);
OPENVINO_C_API(void) xm_batch_free(xm_batch_t *batch); /* NULL is allowed */
/* Runs the entries and returns when the logits are there. Each sequence occurs at most once, and
 * belongs to the batch's compiled model. After a failure every sequence is unchanged. */
OPENVINO_C_API(ov_status_e)
xm_batch_run(xm_batch_t *batch, const xm_batch_entry_t *entries, size_t n_entries);
/* Returns the wanted logits of entry `i` of the last run, [rows][vocabulary], in the order of its
 * tokens. The batch owns the memory; it is valid until the next run. NULL and 0 rows if the entry
 * wanted none. OUT_OF_BOUNDS: that run had i entries or fewer, or failed, or there was no run. */
OPENVINO_C_API(ov_status_e)
xm_batch_logits(const xm_batch_t *batch, size_t i, const float **logits, size_t *rows,
                size_t *vocabulary);
/* Makes the run in progress return INFER_CANCELLED; no effect if there is none. Any thread may call
 * it. */
OPENVINO_C_API(ov_status_e) xm_batch_cancel(xm_batch_t *batch);

#endif
