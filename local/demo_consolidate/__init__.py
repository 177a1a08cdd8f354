"""Demo of voluntary disruption, watched live: drift under a budget, an empty node, three nodes that become one, a held
node.
"""
