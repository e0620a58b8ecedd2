"""The shared package of *attention and transformers from first principles*.

Import the module you need (``from course_utils.models.attention import attention``).
Importing the package itself loads nothing: no torch, no plotting backend, no data.
"""

__version__ = "0.1.0"
