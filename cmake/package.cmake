# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` in the build folder: a Debian package of what cmake --install installs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME xemoe)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "Mixture-of-Experts language models on Intel GPUs through OpenCL")
set(CPACK_PACKAGE_CONTACT "the developers of xemoe")
set(CPACK_PACKAGE_VENDOR xemoe)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "intel-opencl-icd | pocl-opencl-icd")
set(CPACK_STRIP_FILES ON)
include(CPack)
