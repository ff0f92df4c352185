/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe list: list_find.c finds models below a folder, list_row.c looks at each, and
 * list_print.c says it.
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
    XM_LIST_FOLDER, /* that cannot be read */
    XM_LIST_KINDS
};

/* A model, or what looks like one. */
struct xm_list_row {
    char *path; /* owned; below the folder, or "." */
    enum xm_list_kind kind;
    dev_t device; /* of the file */
    ino_t inode;
    bool is_named; /* its name says what it is, not only its first bytes */
    /* Found by xm_list_look(); 0 or "": not known. */
    char family[64], architecture[96];
    uint64_t parameters, active_parameters, bytes;
    char weights[64];    /* the format of most of them: "q4_k", "u4 g64" */
    bool is_counted;     /* the next three */
    uint64_t context;    /* positions that were counted */
    uint64_t need;       /* bytes of memory */
    uint64_t excess;     /* bytes that are missing; 0: it fits */
    struct xm_error why; /* it is not known, or not counted */
};

struct xm_list {
    struct xm_list_row *rows; /* owned; in the order of their paths */
    size_t n, capacity;
    bool is_cut; /* the folder has more entries than are looked at */
};

/* What the models are counted for. */
struct xm_list_wish {
    bool has_device;
    struct xm_device_info device;
    uint64_t context; /* 0: that of `plan` */
    uint64_t memory;  /* bytes there are; 0: the device's */
};

/* All models below. What cannot be read there is a row with its reason; XM_NOT_FOUND, XM_IO: the
 * folder itself cannot be. */
enum xm_status xm_list_find(const char *folder, struct xm_list *out,
                            struct xm_error *err);
void xm_list_free(struct xm_list *l);
/* Fills the row in. */
void xm_list_look(const char *folder, const struct xm_list_wish *wish,
                  struct xm_list_row *row);

/* `columns`: of the terminal; 0: as wide as it is. */
void xm_list_print(const struct xm_list *l, const struct xm_list_wish *wish,
                   size_t columns);
enum xm_status xm_list_print_json(const struct xm_list *l, const char *folder,
                                  const struct xm_list_wish *wish, struct xm_error *err);
const char *xm_list_kind_text(enum xm_list_kind kind);

#endif
