"""Shapes of the volume data in a snapshot: VolumeAttachments and the claims of PersistentVolumes."""

from leeward.adapters.folder.place_shapes import VOLUME_SPEC as PLACE_OF_VOLUME
from leeward.adapters.folder.shapes import boolean, name, record, text
from leeward.adapters.folder.template_shapes import every

ATTACHMENT_SPEC = record({}, {"nodeName": text, "source": record({}, {"persistentVolumeName": text})})
ATTACHMENT_STATUS = record({}, {"attached": boolean, "detachError": record({}, {"message": text})})
VOLUME_SPEC = every(PLACE_OF_VOLUME, record({}, {"claimRef": record({}, {"name": name, "namespace": name})}))
