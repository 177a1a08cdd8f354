"""Memory that a command needs for a folder, in tenths of the cluster that `python -m bench folder` has."""

from bench.folder import MEGABYTES, NODES, PODS, measured, write

TENTH = 10
IMPORTS = 80  # megabytes, whatever the folder holds


def test_a_tenth_of_the_largest_folder_takes_a_tenth_of_its_memory(tmp_path):
    write(tmp_path, NODES // TENTH, PODS // TENTH)
    megabytes, _ = measured(tmp_path, "plan --method emptiness")
    assert megabytes <= IMPORTS + MEGABYTES // TENTH
