"""Line searches."""
