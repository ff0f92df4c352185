# SPDX-License-Identifier: Apache-2.0
# Man pages, completion and docs/reference.md, which the programs themselves write from their
# tables. A cross build has none, since its programs do not run on this machine.
if(NOT CMAKE_CROSSCOMPILING)
    set(XM_PROGRAM_DOCS ${CMAKE_BINARY_DIR}/program_docs)
    add_custom_command(OUTPUT ${XM_PROGRAM_DOCS}/reference.md
        COMMAND ${PROJECT_SOURCE_DIR}/tools/make_docs $<TARGET_FILE:xemoe_cli>
                $<TARGET_FILE:benchmark_app> $<TARGET_FILE:bench_kernels>
                ${XM_PROGRAM_DOCS}
        DEPENDS xemoe_cli benchmark_app bench_kernels ${PROJECT_SOURCE_DIR}/tools/make_docs
        VERBATIM)
    add_custom_target(program_docs ALL DEPENDS ${XM_PROGRAM_DOCS}/reference.md)
    add_dependencies(products program_docs)
    install(DIRECTORY ${XM_PROGRAM_DOCS}/share/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})
endif()
