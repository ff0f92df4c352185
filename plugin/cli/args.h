/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines by table: one row an option, values stored into a struct by offset.
 *
 *     static const struct xm_cli_option options[] = {
 *         { 'n', "tokens", XM_CLI_COUNT, offsetof(struct args, n), "N", "at most N new tokens" },
 *     };
 *
 * Accepted: -n 5, -n5, --tokens 5, --tokens=5, flags without a value, "--" before operands that
 * begin with '-'. A name without a letter may stand behind one dash: -ctk f16. The help text is
 * printed from the same rows.
 */
#ifndef XM_PLUGIN_CLI_ARGS_H
#define XM_PLUGIN_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a value looks like, and the type of the member it is stored in. */
enum xm_cli_kind {
    XM_CLI_FLAG,  /* bool: no value                       */
    XM_CLI_TEXT,  /* const char *: points into argv       */
    XM_CLI_TEXTS, /* struct xm_cli_texts: may be repeated */
    XM_CLI_COUNT, /* uint64_t: a whole number from 1      */
    XM_CLI_WHOLE, /* uint64_t: a whole number from 0      */
    XM_CLI_LIMIT, /* uint64_t: from 1 to XM_CLI_MOST_TOKENS; -1: none, UINT64_MAX */
    XM_CLI_REAL   /* float: a number from 0               */
};

enum { XM_CLI_MAX_TEXTS = 16, XM_CLI_MOST_TOKENS = 1 << 24 };
struct xm_cli_texts {
    const char *list[XM_CLI_MAX_TEXTS];
    size_t n;
};

struct xm_cli_option {
    char letter;      /* 0: none                              */
    const char *name; /* without dashes                       */
    enum xm_cli_kind kind;
    size_t offset;     /* of the member                        */
    const char *value; /* name of the value in the help; NULL for flags */
    const char *help;  /* NULL: in no help, another row says it       */
};

struct xm_cli_spec {
    const char *usage; /* "xemoe info FILE [options]"                   */
    const char *about; /* a paragraph, each line with its newline       */
    /* Rows common to several commands, then the command's own. NULL: none. */
    const struct xm_cli_option *common, *own;
    size_t n_common, n_own;
    /* Name of the one operand, which must be there or an option of its member; NULL: none. */
    const char *operand;
    size_t operand_offset; /* of its const char * member                        */
};

/* Stores what argv[1 …] says into *out; members of options that are not given stay as they
 * are. *help: --help was among them, and nothing else was checked. XM_INVALID: the sentence
 * names the option. */
enum xm_status xm_cli_parse(const struct xm_cli_spec *spec, int argc, char *const *argv,
                            void *out, bool *help, struct xm_error *err);
void xm_cli_help(const struct xm_cli_spec *spec, struct xm_strbuf *out);

/* A whole number of decimal digits only; false when it is none or does not fit. */
bool xm_cli_whole(const char *text, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
