# SPDX-License-Identifier: Apache-2.0
# xm_precompile_test_headers(TARGET): the header that every test includes is parsed once and not
# once a source. Not with ccache, which would then share nothing between build folders: a
# precompiled header differs with its path.
if(NOT XM_CCACHE)
    file(WRITE ${CMAKE_BINARY_DIR}/gtest_headers.cpp "int\nmain()\n{\n    return 0;\n}\n")
    # A program, because its flags must be those of the tests.
    add_executable(gtest_headers ${CMAKE_BINARY_DIR}/gtest_headers.cpp)
    target_link_libraries(gtest_headers PRIVATE xm_flags GTest::gtest)
    target_precompile_headers(gtest_headers PRIVATE $<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h>>)
endif()
function(xm_precompile_test_headers name)
    get_target_property(sources ${name} SOURCES)
    if(TARGET gtest_headers AND NOT "${sources}" MATCHES "\\.c(;|$)") # CMake wants one for C, too
        target_precompile_headers(${name} REUSE_FROM gtest_headers)
    endif()
endfunction()
