/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses command lines by a table. Each row is an option, whose value is stored in a member of a
 * struct.
 *
 *     static const struct xm_cli_option options[] = {
 *         { 'n', "tokens", XM_CLI_COUNT, offsetof(struct args, n), "N", "at most N new tokens" },
 *     };
 *
 * Accepted: -n 5, -n5, --tokens 5, --tokens=5, flags without a value, "--" before operands that
 * begin with '-'. An option without a letter may also be given with one dash: -ctk f16. The help
 * text is made from the same rows.
 *
 * XM_CLI_ONE_DASH is the style of OpenVINO's programs: a name or an alias has one dash or two;
 * there are no letters; "-h" and "--help" are ordinary rows; and a word that is an option is never
 * taken as the value of the option before it.
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

/* The syntax of an option's value, and the type of the member that stores it. */
enum xm_cli_kind {
    XM_CLI_FLAG,  /* bool: no value                       */
    XM_CLI_TEXT,  /* const char *: points into argv       */
    XM_CLI_TEXTS, /* struct xm_cli_texts: may be repeated */
    XM_CLI_WORDS, /* the same, of texts that are not empty */
    XM_CLI_COUNT, /* uint64_t: a whole number from 1      */
    XM_CLI_WHOLE, /* uint64_t: a whole number from 0      */
    XM_CLI_LIMIT, /* uint64_t: from 1 to XM_CLI_MOST_TOKENS; -1: no limit, stored as UINT64_MAX */
    XM_CLI_REAL,   /* float: a number from 0               */
    XM_CLI_SWITCH, /* enum xm_cli_switch: no value, or "yes", "off", … */
    XM_CLI_CHOICE, /* const char *: one of the words of `choices`  */
    XM_CLI_WORD,   /* const char *: a text that is not empty        */
    XM_CLI_SAID,   /* const char *: an empty text is stored as NULL */
    XM_CLI_BOUND,  /* uint64_t: from 0; 0: no bound, stored as UINT64_MAX */
    XM_CLI_RATE,   /* double: a number from 0              */
    XM_CLI_FILES   /* struct xm_cli_files: all words up to the next option */
};

enum xm_cli_switch { XM_SWITCH_UNSAID, XM_SWITCH_OFF, XM_SWITCH_ON };

struct xm_cli_files {
    const char *const *list; /* words of argv, or `one` */
    size_t n;
    const char *one; /* the word behind '=', as in -i=FILE */
};

enum { XM_CLI_MAX_TEXTS = 16, XM_CLI_MOST_TOKENS = 1 << 24 };
struct xm_cli_texts {
    const char *list[XM_CLI_MAX_TEXTS];
    size_t n;
};

struct xm_cli_option {
    char letter;      /* of -n; 0: none                       */
    const char *name; /* without dashes                       */
    enum xm_cli_kind kind;
    size_t offset;     /* of the member                        */
    const char *value; /* name of the value in the help; NULL for flags */
    const char *help;  /* NULL: not in the help, because another row describes it */
    /* Other names, separated by spaces. A name that begins with '-' has one dash, even if the
     * option has a letter. NULL: none. */
    const char *aliases;
    /* Values separated by spaces. XM_CLI_CHOICE accepts only these; for other kinds they are only
     * completed by shells. NULL: none. */
    const char *choices;
    /* Appends values for completion by shells, each followed by a space, from a table of another
     * module; NULL: none. */
    void (*add_values)(struct xm_strbuf *out);
};

enum xm_cli_style { XM_CLI_TWO_DASHES, XM_CLI_ONE_DASH };

/* A row that is not an option: a heading for the following rows in help and documents, with an
 * example command line that uses some of them. An example that begins with '-' belongs to a table
 * that several commands share: it is appended to the example of the command whose help it is in. */
#define XM_CLI_GROUP(text, example)                                                      \
    {                                                                                    \
        0, NULL, XM_CLI_FLAG, 0, example, text                                           \
    }

struct xm_cli_spec {
    const char *usage; /* the usage line: "xemoe info FILE [options]" */
    const char *about; /* a paragraph of help, each line with its newline */
    /* Rows common to several commands, then the command's own. NULL: none. */
    const struct xm_cli_option *common, *own;
    size_t n_common, n_own;
    /* Name of the only operand in the help. It is required, unless it is optional or an option sets
     * the same member. NULL: the command has no operand. */
    const char *operand;
    size_t operand_offset; /* offset of its const char * member */
    /* the member is a struct xm_cli_texts and takes any number of words */
    bool operands_are_many;
    /* environment variable with the operand's default; NULL: none */
    const char *operand_env;
    /* Appends the possible first operands, each followed by a space, which shells complete instead
     * of files. NULL: files. */
    void (*add_operands)(struct xm_strbuf *out);
    enum xm_cli_style style;
    /* Called for each given option with its value as text; may be NULL. */
    enum xm_status (*given)(void *out, const struct xm_cli_option *o, const char *value,
                            struct xm_error *err);
    bool operand_is_optional;
    /* The command's words, if they are more than argv[0]: "bench --sampling"; NULL: argv[0]. */
    const char *name;
    /* A command line for the help, if the command's usual example shows something else; NULL: the
     * usual one. */
    const char *example;
};

/* Parses argv[1..argc-1] and stores the values in *out; members of options that are not given keep
 * their values. *help: --help was given, and nothing else was checked. XM_INVALID: the sentence
 * names the option. */
enum xm_status xm_cli_parse(const struct xm_cli_spec *spec, int argc, char *const *argv,
                            void *out, bool *help, struct xm_error *err);
/* Appends the help text. `example`: a command line of this command, for groups of options that
 * several commands share; NULL: none. */
void xm_cli_help(const struct xm_cli_spec *spec, const char *example,
                 struct xm_strbuf *out);
/* Writes the next of an option's aliases, with its dashes, into `word`; `*at` is o->aliases at
 * first. Returns false: there are no more. */
enum { XM_CLI_SPELLING = 64 };
bool xm_cli_next_alias(const char **at, char word[XM_CLI_SPELLING]);
/* Appends the example of a group's row, after the command's example if it begins with '-'. */
void xm_cli_group_example(const struct xm_cli_option *group, const char *example,
                          struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
