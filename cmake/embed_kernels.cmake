# SPDX-License-Identifier: Apache-2.0
# cmake -DLIST=<file with one path a line> -DROOT=<folder> -DOUT=<.c> -P embed_kernels.cmake
#
# Writes a C file with the text of every kernel as a byte array (C compilers need not accept string
# literals above 4095 characters) and the table xm_kernel_files of runtime/kernel_source.h. Names in
# the table are relative to ROOT.
file(STRINGS ${LIST} files)
set(arrays "")
set(rows "")
set(n 0)
foreach(file IN LISTS files)
    file(READ ${ROOT}/${file} hex HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    string(APPEND arrays "static const unsigned char text_${n}[] = {\n    ${hex}0};\n")
    string(APPEND rows "    {\"${file}\", (const char *)text_${n}},\n")
    math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT}.new
"/* Written by cmake/embed_kernels.cmake from kernels/cl. */
#include \"runtime/kernel_source.h\"

${arrays}
const struct xm_kernel_file xm_kernel_files[] = {
${rows}};
const size_t xm_n_kernel_files = ${n};
")
file(RENAME ${OUT}.new ${OUT})
