"""Claims and volumes: those that a pod uses, and the volume that a provisioner makes for a claim.

Volumes are those of the EBS CSI driver: zonal, one node at a time, deleted with their claim.
"""

from __future__ import annotations

from .objects import Obj, labels_of, name_of, namespace_of, uid_of
from .settings import DEFAULT_CLASS
from .store import Store, key_of
from .world import World

ZONE = "topology.kubernetes.io/zone"
DRIVER = "ebs.csi.aws.com"


def gp3_class() -> Obj:
    """Return the StorageClass of a cluster with the EBS CSI driver: gp3, bound where the pod is placed, the default
    one.
    """
    return {
        "metadata": {"name": "gp3", "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": DRIVER,
        "parameters": {"type": "gp3"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


def claim_names(pod: Obj) -> list[str]:
    """Return the claims that the pod mounts, in the order of its volumes."""
    found = []
    for volume in pod["spec"].get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name:
            found.append(str(name))
    return found


def volume_of(claim: Obj, store: Store) -> Obj | None:
    """Return the PersistentVolume that the claim is bound to, None before."""
    name = (claim.get("spec") or {}).get("volumeName")
    return store.find("persistentvolumes", name) if name else None


def attachable_volumes(pod: Obj, store: Store) -> list[Obj]:
    """Return the bound volumes of the pod that a CSI driver has to attach to its node."""
    found = []
    for name in claim_names(pod):
        claim = store.find("persistentvolumeclaims", name, namespace_of(pod))
        volume = volume_of(claim, store) if claim is not None else None
        if volume is not None and volume["spec"].get("csi"):
            found.append(volume)
    return found


def class_of(claim: Obj, store: Store) -> Obj | None:
    """Return the StorageClass of the claim, None without one."""
    name = (claim.get("spec") or {}).get("storageClassName")
    return store.find("storageclasses", name) if name else None


def waits_for_consumer(storage_class: Obj | None) -> bool:
    """Return whether a claim of the class is bound only when a pod that uses it is placed."""
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def provision(world: World, claim: Obj, zone: str) -> Obj:
    """Make a volume in that zone and bind the claim to it, as external-provisioner and the volume binder do."""
    volume = world.create("persistentvolumes", _volume(world, claim, zone))
    bind(world, claim, volume)
    return volume


def bind(world: World, claim: Obj, volume: Obj) -> bool:
    """Bind volume and claim (persistent volume controller); return True when anything had to be written."""
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace_of(claim)}
    reference |= {"name": name_of(claim), "uid": uid_of(claim)}

    def edit_volume(entry: Obj) -> None:
        entry["spec"]["claimRef"] = {**(entry["spec"].get("claimRef") or {}), **reference}
        entry["status"] = {**(entry.get("status") or {}), "phase": "Bound"}

    def edit_claim(entry: Obj) -> None:
        spec = entry.setdefault("spec", {})
        spec["volumeName"] = name_of(volume)
        known = {"accessModes": volume["spec"].get("accessModes"), "capacity": volume["spec"].get("capacity")}
        entry["status"] = {"phase": "Bound", **{key: value for key, value in known.items() if value}}

    written = world.change("persistentvolumes", key_of(volume), edit_volume)
    return world.change("persistentvolumeclaims", key_of(claim), edit_claim) or written


def _volume(world: World, claim: Obj, zone: str) -> Obj:
    spec = claim["spec"]
    storage_class = class_of(claim, world.store) or {}
    driver = storage_class.get("provisioner", DRIVER)
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {
        "metadata": {
            "name": f"pvc-{uid_of(claim)}",
            "annotations": {"pv.kubernetes.io/provisioned-by": driver},
        },
        "spec": {
            "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": spec.get("storageClassName", ""),
            "volumeMode": "Filesystem",
            "csi": {"driver": driver, "fsType": "ext4", "volumeHandle": f"vol-{world.random.getrandbits(68):017x}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }


def zone_terms(volume: Obj) -> list[Obj] | None:
    """Return the node selector terms that a volume requires of its pods; None for a volume that can be used anywhere.

    They are the volume's own node affinity, else its zone label (plugins VolumeBinding and VolumeZone).
    """
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is not None:
        return required.get("nodeSelectorTerms") or []
    zone = labels_of(volume).get(ZONE)
    if zone is None:
        return None
    return [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zone.split("__")}]}]
