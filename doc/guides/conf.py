# SPDX-License-Identifier: BSD-3-Clause
# How Sphinx renders the guides: meson with -Ddocs=true.
project = "ntbmsg"
copyright = "ntbmsg contributors"
master_doc = "index"
html_theme = "alabaster"
html_show_sourcelink = False
