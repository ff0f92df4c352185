/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes, element types and strings of the OpenVINO C API.
 *
 * Rules for all functions of the API: a function that creates a handle returns it through an
 * out-pointer, which a failure leaves unchanged. The caller frees the handle with the matching
 * _free function, which accepts NULL. A missing argument gives INVALID_C_PARAM and a line in the
 * log (ov_util.h). Any other failure stores a sentence, which ov_get_last_err_msg() returns until
 * the next failure; the process has one such sentence for all threads.
 */
#ifndef OPENVINO_C_OV_COMMON_H
#define OPENVINO_C_OV_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* programs rely on this header to include stdio.h and wchar.h */
#include <wchar.h>

#ifdef __cplusplus
#define OPENVINO_C_API_EXTERN extern "C"
#else
#define OPENVINO_C_API_EXTERN
#endif

#if defined(__GNUC__)
#define OPENVINO_C_API_VISIBLE __attribute__((visibility("default")))
#define OV_NODISCARD           __attribute__((warn_unused_result))
#ifndef OPENVINO_ENABLE_UNICODE_PATH_SUPPORT
#define OPENVINO_ENABLE_UNICODE_PATH_SUPPORT
#endif
#else
#define OPENVINO_C_API_VISIBLE
#define OV_NODISCARD
#endif

#define OPENVINO_C_API_CALLBACK
#define OPENVINO_C_API(...) OPENVINO_C_API_EXTERN OPENVINO_C_API_VISIBLE __VA_ARGS__
#ifdef __cplusplus
#define OPENVINO_C_VAR(...) extern "C" OPENVINO_C_API_VISIBLE __VA_ARGS__
#else
#define OPENVINO_C_VAR(...) extern OPENVINO_C_API_VISIBLE __VA_ARGS__
#endif

typedef enum {
    OK = 0,
    GENERAL_ERROR = -1,
    NOT_IMPLEMENTED = -2,
    NETWORK_NOT_LOADED = -3,
    PARAMETER_MISMATCH = -4,
    NOT_FOUND = -5,
    OUT_OF_BOUNDS = -6,
    UNEXPECTED = -7,
    REQUEST_BUSY = -8,
    RESULT_NOT_READY = -9,
    NOT_ALLOCATED = -10,
    INFER_NOT_STARTED = -11,
    NETWORK_NOT_READ = -12,
    INFER_CANCELLED = -13,
    INVALID_C_PARAM = -14,
    UNKNOWN_C_ERROR = -15,
    NOT_IMPLEMENT_C_METHOD = -16,
    UNKNOW_EXCEPTION = -17
} ov_status_e;

typedef enum {
    DYNAMIC = 0U,
    OV_BOOLEAN,
    BF16,
    F16,
    F32,
    F64,
    I4,
    I8,
    I16,
    I32,
    I64,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
    U16,
    U32,
    U64,
    NF4,
    F8E4M3,
    F8E5M3, /* the type f8e5m2; the name is OpenVINO's */
    STRING,
    F4E2M1,
    F8E8M0
} ov_element_type_e;

/* another name of OV_BOOLEAN; a system header may use the name already */
#ifndef BOOLEAN
#define BOOLEAN OV_BOOLEAN
#endif

/* Functions that encrypt and decrypt cached models, but not exported ones. Each is called twice:
 * first for the size of its output, then for the bytes. */
typedef struct {
    void(OPENVINO_C_API_CALLBACK *encrypt_func)(const char *in, const size_t in_size,
                                                char *out, size_t *out_size);
    void(OPENVINO_C_API_CALLBACK *decrypt_func)(const char *in, const size_t in_size,
                                                char *out, size_t *out_size);
} ov_encryption_callbacks;

/* Returns a static text for the status. */
OPENVINO_C_API(const char *) ov_get_error_info(ov_status_e status);
/* Frees a string that the library returned; NULL is allowed. */
OPENVINO_C_API(void) ov_free(const char *content);
/* Returns a copy of the last failure's sentence; free it with ov_free(). NULL: there is none.
 * Freeing a core clears the sentence. */
OPENVINO_C_API(const char *) ov_get_last_err_msg(void);

#endif
