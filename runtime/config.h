/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties. A row in options/engine.def, program.def or accepted.def defines a property: its
 * member of struct xm_config, kind, name, default and help.
 *
 * A config starts with the defaults and takes the user's texts (properties of the API, flags of the
 * program). Then xm_config_finalise fills what the user did not set, by the table of rules in
 * config.c, for one device and one program. After that the config is read-only. */
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

/* Facts of a program (a model to compile) that the rules read. */
struct xm_program_facts {
    bool has_moe_3gemm_fused_compressed;
    bool has_moe;
    bool has_paged_attention;
    bool is_stateless; /* no states from run to run: not a language model  */
};

void xm_config_init(struct xm_config *c); /* sets all options to their defaults */
/* Sets a property from its OpenVINO text ("f16", "YES", "512"). XM_NOT_FOUND: no such property;
 * XM_INVALID: bad value (the message lists what is accepted). */
enum xm_status xm_config_set(struct xm_config *c, const char *name, const char *value,
                             struct xm_error *err);
/* Appends the value of a property as OpenVINO text. XM_NOT_FOUND: no such property. */
enum xm_status xm_config_get(const struct xm_config *c, const char *name,
                             struct xm_strbuf *out, struct xm_error *err);
/* Copies option `o` of `from` to `c`, and whether the user has set it. */
void xm_config_copy(struct xm_config *c, const struct xm_config *from, enum xm_option o);
/* Whether all options of engine.def are equal in both configs, so that one engine can serve
 * both. */
bool xm_config_same_engine(const struct xm_config *a, const struct xm_config *b);
bool xm_config_user_set(const struct xm_config *c, enum xm_option option);

/* Checks values and combinations that fail on every device and for every program. XM_INVALID: the
 * message says which property is wrong. */
enum xm_status xm_config_check(const struct xm_config *c, struct xm_error *err);

/* The sizes of groups of columns of 8-bit activations that share a scale, as kernels know them. */
enum { XM_FACTOR_FINE = 32, XM_FACTOR_COARSE = 128 };
/* Returns the number of columns that share a scale where prompts are multiplied as 8-bit integers:
 * 32 or 128, the sizes that kernels know. DYNAMIC_QUANTIZATION_GROUP_SIZE of 1 to 127 gives 32, of
 * 128 and more 128; 0: activations are not quantised to 8 bits. The config is final. */
uint32_t xm_config_factor_columns(const struct xm_config *c);

/* Applies the rules for a device and a program. A value that the user set wins over a rule; if that
 * cannot work, the error says which property to drop. `why` (may be NULL) gets a line for each rule
 * that decided a value: "GPU_USE_ONEDNN = YES: device has DPAS". `program` NULL: a language model
 * without MoE. Does nothing if the config is already final. */
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

/* The options as the property SUPPORTED_PROPERTIES and `xemoe devices --properties` list them. */
struct xm_option_row {
    const char *name;
    const char *help; /* of accepted.def: why the option has no effect, or "" */
    enum xm_option_list list;
};
const struct xm_option_row *xm_option_rows(size_t *n); /* all options; static */
/* Appends a line "NAME = value" for each option that differs from its default. */
void xm_config_print(const struct xm_config *c, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
