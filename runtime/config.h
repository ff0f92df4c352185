/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties: one row each in options/engine.def, program.def or accepted.def gives member,
 * default, parser, name, help.
 *
 * A config starts with the defaults, takes the user's strings (properties of the API,
 * flags of the program), and is finalised once for a device and a program by the table of
 * rules in config.c: rules fill only what the user did not set. After that it is read-only.
 */
#ifndef XM_RUNTIME_CONFIG_H
#define XM_RUNTIME_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/device_info.h"
#include "runtime/util/element.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_tristate { XM_AUTO = -1, XM_NO = 0, XM_YES = 1 };
enum xm_cache_mode { XM_CACHE_SPEED, XM_CACHE_SIZE };
enum xm_queue_type { XM_QUEUE_AUTO, XM_QUEUE_IN_ORDER, XM_QUEUE_OUT_OF_ORDER };

enum { XM_OPTION_TEXT = 1024 };

/* The C type of options of kind TEXT. */
typedef char xm_option_text[XM_OPTION_TEXT];

enum xm_option {
#define OPTION(member, kind, ctype, name, value, help) XM_OPTION_##member,
#include "runtime/options/all.def"
    XM_OPTION_COUNT
};

struct xm_config {
#define OPTION(member, kind, ctype, name, value, help) ctype member;
#include "runtime/options/all.def"
    bool user_set[XM_OPTION_COUNT]; /* options that the user has set */
    bool finalised;
};

/* Facts of the program that the rules read besides those of the device. */
struct xm_program_facts {
    bool has_moe_3gemm_fused_compressed;
    bool has_moe;
    bool has_paged_attention;
    bool is_stateless; /* keeps nothing from run to run: no language model */
};

void xm_config_init(struct xm_config *c); /* the defaults */
/* Sets one property from its OpenVINO text ("f16", "YES", "512"). XM_NOT_FOUND: no such
 * property; XM_INVALID: bad value (the sentence lists what is accepted). */
enum xm_status xm_config_set(struct xm_config *c, const char *name, const char *value,
                             struct xm_error *err);
/* The value as OpenVINO text. XM_NOT_FOUND: no such property. */
enum xm_status xm_config_get(const struct xm_config *c, const char *name,
                             struct xm_strbuf *out, struct xm_error *err);
/* Copies option `o` of `from` to `c`, and whether the user has set it. */
void xm_config_copy(struct xm_config *c, const struct xm_config *from, enum xm_option o);
/* Whether all engine options are equal, so that one open engine serves both configs. */
bool xm_config_same_engine(const struct xm_config *a, const struct xm_config *b);
bool xm_config_user_set(const struct xm_config *c, enum xm_option option);

/* XM_INVALID: a value, or a pair of values, that no program on any device can run with. */
enum xm_status xm_config_check(const struct xm_config *c, struct xm_error *err);

/* Columns that share a factor of 8-bit activations, as kernels know them. */
enum { XM_FACTOR_FINE = 32, XM_FACTOR_COARSE = 128 };
/* Columns that share a factor where prompts are multiplied as 8-bit integers, of those that kernels
 * know: 32 or 128; 0: activations stay as they are. What is not one of them becomes the next finer
 * one, or the finest. The config is final. */
uint32_t xm_config_factor_columns(const struct xm_config *c);

/* Applies the rules for a device and a program. A user's setting wins over a rule; where
 * that makes the program impossible, the error says which setting to drop. `why` (may be NULL)
 * gets a line per rule that decided a value: "GPU_USE_ONEDNN = YES: device has DPAS". A NULL
 * program is a language model without MoE; a config that is final stays as it is. */
enum xm_status xm_config_finalise(struct xm_config *c,
                                  const struct xm_device_info *device,
                                  const struct xm_program_facts *program,
                                  struct xm_strbuf *why, struct xm_error *err);

/* Which object reads an option. */
enum xm_option_list {
    XM_OPTIONS_ENGINE,   /* the open device                                        */
    XM_OPTIONS_PROGRAM,  /* the compiled model                                     */
    XM_OPTIONS_ACCEPTED, /* none: the value is checked and returned, without effect */
};

/* Rows, for SUPPORTED_PROPERTIES and `xemoe devices --properties`. */
struct xm_option_row {
    const char *name;
    const char *help; /* of accepted ones: why they have no effect, or "" */
    enum xm_option_list list;
};
const struct xm_option_row *xm_option_rows(size_t *n); /* all options; static */
/* Lines "NAME = value" of every option that differs from its default. */
void xm_config_print(const struct xm_config *c, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
