"""The packaged template: the CDK app's stack as one CloudFormation template with parameters, for an installation
without a clone (docs/designs/packages.md).

`synthesis.py` synthesizes the stack with markers in place of settings, `variants.py` merges the optional settings into
one tree of conditions, `filling.py` puts parameters in the place of markers, `template.py` composes.
"""
