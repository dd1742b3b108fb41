"""The pages of the documentation site, as MkDocs reads them; `make docs` builds it.

Written into one folder: the pages of ``docs/`` as they are, but for links that leave ``docs/``;
what such links name (results, pictures, source files) as pages and files of the site; and pages
made from the library's models, the committed figures and the record. Nothing of it is kept by git.
"""
