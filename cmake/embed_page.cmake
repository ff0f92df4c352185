# SPDX-License-Identifier: Apache-2.0
# cmake -DFILES=<names separated by ;> -DROOT=<folder> -DOUT=<.c> -P embed_page.cmake
#
# Writes a C file with the bytes of each file and the table xm_page_files of plugin/server/page.h.
# The path of index.html is "/", that of another file "/" and its name.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ico "image/x-icon")
set(arrays "")
set(rows "")
set(n 0)
foreach(file IN LISTS FILES)
    string(REGEX REPLACE ".*\\." "" ending "${file}")
    if(NOT DEFINED type_${ending})
        message(FATAL_ERROR "embed_page.cmake knows no content type for ${file}")
    endif()
    file(READ ${ROOT}/${file} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR bytes "${digits} / 2")
    string(REGEX REPLACE "(................................)" "\\1\n    " hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
    set(path "/${file}")
    if(file STREQUAL "index.html")
        set(path "/")
    endif()
    string(APPEND arrays "static const unsigned char bytes_${n}[] = {\n    ${hex}0};\n")
    string(APPEND rows "    {\"${path}\", \"${type_${ending}}\", bytes_${n}, ${bytes}},\n")
    math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT}.new
"/* Written by cmake/embed_page.cmake from plugin/server/page. */
#include \"plugin/server/page.h\"

${arrays}
const struct xm_page_file xm_page_files[] = {
${rows}};
const size_t xm_n_page_files = ${n};
")
file(RENAME ${OUT}.new ${OUT})
