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
 *
 * XM_CLI_ONE_DASH is the style of OpenVINO's programs: a name or its alias behind one dash or two,
 * letters are names, "-h" and "--help" are rows as others, and an option is never the value of the
 * option before it.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_COMMAND_LINE_H
#define XM_PLUGIN_PROGRAM_UTIL_COMMAND_LINE_H

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
    XM_CLI_FLAG,   /* bool: no value                       */
    XM_CLI_TEXT,   /* const char *: points into argv       */
    XM_CLI_TEXTS,  /* struct xm_cli_texts: may be repeated */
    XM_CLI_COUNT,  /* uint64_t: a whole number from 1      */
    XM_CLI_WHOLE,  /* uint64_t: a whole number from 0      */
    XM_CLI_LIMIT,  /* uint64_t: from 1 to XM_CLI_MOST_TOKENS; -1: none, UINT64_MAX */
    XM_CLI_REAL,   /* float: a number from 0               */
    XM_CLI_SWITCH, /* enum xm_cli_switch: alone, or "yes", "off", … as the value */
    XM_CLI_CHOICE, /* const char *: one of the words of `choices`  */
    XM_CLI_WORD,   /* const char *: a text that is not empty        */
    XM_CLI_SAID,   /* const char *: NULL where the text is empty    */
    XM_CLI_BOUND,  /* uint64_t: from 0, which stands for no bound: UINT64_MAX */
    XM_CLI_RATE,   /* double: a number from 0              */
    XM_CLI_FILES   /* struct xm_cli_files: all words up to the next option */
};

enum xm_cli_switch { XM_SWITCH_UNSAID, XM_SWITCH_OFF, XM_SWITCH_ON };

struct xm_cli_files {
    const char *const *list; /* words of argv, or `one` */
    size_t n;
    const char *one; /* behind '=' */
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
    size_t offset;       /* of the member                        */
    const char *value;   /* name of the value in the help; NULL for flags */
    const char *help;    /* NULL: in no help, another row says it       */
    const char *alias;   /* a second name; NULL: none           */
    const char *choices; /* of XM_CLI_CHOICE, apart by spaces   */
};

enum xm_cli_style { XM_CLI_TWO_DASHES, XM_CLI_ONE_DASH };

/* A row that is no option: the heading of the rows below it, in help and documents, with a command
 * line that has some of them. */
#define XM_CLI_GROUP(text, example)                                                      \
    {                                                                                    \
        0, NULL, XM_CLI_FLAG, 0, example, text                                           \
    }

struct xm_cli_spec {
    const char *usage; /* "xemoe info FILE [options]"                   */
    const char *about; /* a paragraph, each line with its newline       */
    /* Rows common to several commands, then the command's own. NULL: none. */
    const struct xm_cli_option *common, *own;
    size_t n_common, n_own;
    /* Name of the one operand, which must be there or an option of its member; NULL: none. */
    const char *operand;
    size_t operand_offset;  /* of its const char * member                        */
    bool operands_are_many; /* it is a struct xm_cli_texts, for any number of words */
    /* the environment variable it is taken from if it is not given; NULL: none */
    const char *operand_env;
    enum xm_cli_style style;
    /* Called for each option with its value as it was given; NULL: nobody asks. */
    enum xm_status (*given)(void *out, const struct xm_cli_option *o, const char *value,
                            struct xm_error *err);
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
