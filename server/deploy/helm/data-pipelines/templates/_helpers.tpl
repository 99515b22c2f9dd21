{{- define "data-pipelines.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "data-pipelines.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "data-pipelines.labels" -}}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{ include "data-pipelines.selector" . }}
{{- end }}

{{- define "data-pipelines.secret" -}}
{{ .Values.existingSecret | default (include "data-pipelines.name" .) }}
{{- end }}

{{- /* A Deployment and its PodDisruptionBudget. Takes: root, role, pod (its values), port (name and number), env, probes. */}}
{{- define "data-pipelines.deployment" -}}
{{- $name := printf "%s-%s" (include "data-pipelines.name" .root) .role }}
{{- $values := .root.Values }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "data-pipelines.labels" . | nindent 4 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .pod.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "data-pipelines.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "data-pipelines.labels" . | nindent 8 }}
      annotations:
        # Pods start again when settings change.
        checksum/settings: {{ include (print .root.Template.BasePath "/settings.yaml") .root | sha256sum }}
        {{- with .pod.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      automountServiceAccountToken: false
      # Streams are released within this time.
      terminationGracePeriodSeconds: 60
      securityContext:
        runAsNonRoot: true
        runAsUser: 65534
        runAsGroup: 65534
        fsGroup: 65534
        seccompProfile: { type: RuntimeDefault }
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .role }}
          image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [{{ .role }}]
          ports:
            - { name: {{ .port.name }}, containerPort: {{ .port.number }} }
          env:
            - { name: HOST, value: 0.0.0.0 }
            {{- toYaml .env | nindent 12 }}
          envFrom:
            - configMapRef: { name: {{ include "data-pipelines.name" .root }} }
            - secretRef: { name: {{ include "data-pipelines.secret" .root }} }
          {{- toYaml .probes | nindent 10 }}
          resources:
            {{- toYaml .pod.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            - { name: data, mountPath: /data }
            - { name: tmp, mountPath: /tmp }
      volumes:
        - name: data
          {{- if $values.existingClaim }}
          persistentVolumeClaim: { claimName: {{ $values.existingClaim }} }
          {{- else }}
          emptyDir: {}
          {{- end }}
        - name: tmp
          emptyDir: {}
      {{- with .pod.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .pod.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .pod.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "data-pipelines.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .pod.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "data-pipelines.selector" . | nindent 6 }}
{{- end }}
