/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe list: list_find.c finds the models below a folder, list_row.c determines the facts
 * of each, list_print.c prints them.
 */
#ifndef XM_PLUGIN_CLI_LIST_H
#define XM_PLUGIN_CLI_LIST_H

#include <sys/types.h>

#include "plugin/cli/cli.h"
#include "runtime/engine.h"

enum xm_list_kind {
    XM_LIST_GGUF,
    XM_LIST_OPENVINO,
    XM_LIST_COMPILED,
    XM_LIST_FOLDER, /* a folder that cannot be read */
    XM_LIST_KINDS
};

/* A file or folder that is a model, or looks like one. */
struct xm_list_row {
    char *path; /* owned; relative to the folder, or "." */
    enum xm_list_kind kind;
    /* of the file; equal values identify a file with several names */
    dev_t device;
    ino_t inode;
    bool is_named; /* recognised by its name, not only by its first bytes */
    /* Set by xm_list_look(); 0 or "": not known. */
    char family[64], architecture[96];
    uint64_t parameters, active_parameters, bytes;
    char weights[64];    /* format of most weights: "q4_k", "u4 g64"      */
    bool is_counted;     /* the next two members are set                  */
    uint64_t context;    /* in tokens; `need` is for a KV cache of this size */
    uint64_t need;       /* memory that the model needs, in bytes         */
    bool is_room_known;  /* the device's memory is known; then `excess` is set */
    uint64_t excess;     /* bytes that the device lacks; 0: the model fits */
    struct xm_error why; /* the reason why the model cannot be used       */
    /* why it only accepts and returns token ids: it has no supported tokenizer, or does not
     * generate text */
    struct xm_error no_text;
};

struct xm_list {
    struct xm_list_row *rows; /* owned; sorted by path */
    size_t n, capacity;
    bool is_cut; /* the folder has more entries than the search visits */
};

/* The device and the context that memory is computed for. */
struct xm_list_wish {
    bool has_device; /* false: memory is not computed */
    struct xm_device_info device;
    uint64_t context; /* in tokens; 0: the default of xemoe plan */
    uint64_t memory;  /* available bytes; 0: the device's memory */
};

/* Finds all models below `folder`. An entry that cannot be read is a row with the reason.
 * XM_NOT_FOUND, XM_IO: the folder itself cannot be read. */
enum xm_status xm_list_find(const char *folder, struct xm_list *out,
                            struct xm_error *err);
/* Whether there is a model below the folder. Looks at no more than 10,000 names. */
bool xm_list_has_any(const char *folder);
void xm_list_free(struct xm_list *l);
/* Reads the model of a row that xm_list_find made and fills in the other members. */
void xm_list_look(const char *folder, const struct xm_list_wish *wish,
                  struct xm_list_row *row);

/* Prints a table at most `columns` wide; SIZE_MAX: of any width. */
void xm_list_print(const struct xm_list *l, const struct xm_list_wish *wish,
                   size_t columns);
enum xm_status xm_list_print_json(const struct xm_list *l, const char *folder,
                                  const struct xm_list_wish *wish, struct xm_error *err);
const char *xm_list_kind_text(enum xm_list_kind kind);

#endif
